// What the thread sanitizer is told of libraries that it does not see into: LLVM makes its own locks as threads come to need them.
extern "C" const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libLLVM.so.\n"; }  // NOLINT(readability-identifier-naming)
