#pragma once

namespace tinygrad::search {

/// The work of a tg-worker: reads messages from a socket and answers them, until it is closed. `memory_file` is mapped for the content and
/// the results of buffers, and closed. Returns the exit status of the process.
int serve_worker(int socket, int memory_file);

}  // namespace tinygrad::search
