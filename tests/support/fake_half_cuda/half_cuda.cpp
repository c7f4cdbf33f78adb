// A library that passes for NVIDIA's driver until its functions are looked for.
// NOLINTNEXTLINE(readability-identifier-naming): CUDA's name
extern "C" __attribute__((visibility("default"))) int cuDriverGetVersion(int* version) { return *version = 12040, 0; }
