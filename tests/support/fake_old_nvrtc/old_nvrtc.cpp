// NVRTC as far as its version.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) int nvrtcVersion(int* major, int* minor) { return *major = 12, *minor = 1, 0; }
