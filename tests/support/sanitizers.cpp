// What sanitizers are told of libraries that they do not see into.

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)

/// LLVM makes its own locks as threads come to need them.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libLLVM.so.\n"; }

/// NVIDIA's compilers lose some memory with each kernel, drivers of Vulkan when they open.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libnvJitLink.so\nleak:libnvrtc.so\nleak:libvulkan_\n"; }

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
