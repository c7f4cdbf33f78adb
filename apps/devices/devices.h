#pragma once

namespace tinygrad::apps {

/// tg devices: prints which backends there are, which work here, and why the others don't.
void list_devices(bool json);

}  // namespace tinygrad::apps
