#include "base/dylib.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <deque>
#include <mutex>
#include <string_view>
#include <utility>

namespace tinygrad {

std::optional<DynamicLibrary> DynamicLibrary::try_open(std::initializer_list<std::string> names, std::string* why) {
  return first_of(names, why, [](const char* name) { return ::dlopen(name, RTLD_NOW | RTLD_LOCAL); });
}

std::optional<DynamicLibrary> DynamicLibrary::try_open_apart(std::initializer_list<std::string> names, std::string* why) {
#ifdef LM_ID_NEWLM
  return first_of(names, why, [](const char* name) { return ::dlmopen(LM_ID_NEWLM, name, RTLD_NOW | RTLD_LOCAL); });
#else
  return first_of(names, why, [](const char*) -> void* { return nullptr; });
#endif
}

std::optional<DynamicLibrary> DynamicLibrary::first_of(std::initializer_list<std::string> names, std::string* why,
                                                       void* (*open)(const char*)) {
  std::string tried;
  for (const std::string& name : names) {
    if (void* handle = open(name.c_str())) return DynamicLibrary(handle, name);
    const char* said = ::dlerror();
    const std::string_view reason = said ? said : "unknown error";
    const bool absent = reason == name + ": cannot open shared object file: No such file or directory";
    tried += fmt::format("{}{}{}", tried.empty() ? "" : ", ", name, absent ? "" : fmt::format(" ({})", reason));
  }
  if (why) *why = fmt::format("cannot open a shared library; tried {}", tried);
  return std::nullopt;
}

DynamicLibrary DynamicLibrary::open(std::initializer_list<std::string> names) {
  std::string why;
  if (auto library = try_open(names, &why)) return std::move(*library);
  throw DeviceError(why);
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_) ::dlclose(handle_);
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

void* DynamicLibrary::look_up(const char* symbol_name) const noexcept { return ::dlsym(handle_, symbol_name); }

void* DynamicLibrary::require(const char* symbol_name) const {
  if (void* address = look_up(symbol_name)) return address;
  throw DeviceError(fmt::format("{} has no symbol '{}': it is of another version than the one supported", name_, symbol_name));
}

const DynamicLibrary& keep_open(DynamicLibrary library) {
  static std::mutex mutex;
  static std::deque<DynamicLibrary>& kept = *new std::deque<DynamicLibrary>;
  const std::lock_guard lock(mutex);
  return kept.emplace_back(std::move(library));
}

}  // namespace tinygrad
