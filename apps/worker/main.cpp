// tg-worker: runs kernels that a search tries out, so that what they break is not the program that searches. Started by the library with
// a socket as its input and a file of memory as descriptor 3.

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "search/worker_serve.h"

int main() {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fputs("tg-worker is started by the tinygrad library, for BEAM\n", stderr);
    return 2;
  }
  ::close_range(4, ~0u, 0);  // what the program forgot to keep to itself
  return tinygrad::search::serve_worker(0, 3);
}
