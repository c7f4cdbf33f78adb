#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>

namespace tinygrad {

/// A shared library opened at run time; closed with the last word of this object. Drivers and compilers that leave threads
/// or exit handlers behind are for keep_open().
class DynamicLibrary {
 public:
  /// The first of `names` that opens. Throws DeviceError saying what was tried and why each failed.
  static DynamicLibrary open(std::initializer_list<std::string> names);
  /// The same, with nothing for none; `why` then says what was tried.
  static std::optional<DynamicLibrary> try_open(std::initializer_list<std::string> names, std::string* why = nullptr);
  /// The same of another copy of the library, and of all libraries that it needs, with state of its own.
  static std::optional<DynamicLibrary> try_open_apart(std::initializer_list<std::string> names, std::string* why = nullptr);

  ~DynamicLibrary();
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;

  /// The name that opened.
  const std::string& name() const noexcept { return name_; }

  /// A function or variable by its name: `lib.symbol<int(const char*)>("puts")`. Throws DeviceError when it is not there.
  template <class T>
  T* symbol(const char* symbol_name) const {
    return cast<T>(require(symbol_name));
  }
  /// The same, with null for none.
  template <class T>
  T* find(const char* symbol_name) const noexcept {
    return cast<T>(look_up(symbol_name));
  }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  static std::optional<DynamicLibrary> first_of(std::initializer_list<std::string> names, std::string* why, void* (*open)(const char*));
  void* look_up(const char* symbol_name) const noexcept;
  void* require(const char* symbol_name) const;
  template <class T>
  static T* cast(void* address) noexcept {
    return reinterpret_cast<T*>(address);
  }

  void* handle_ = nullptr;
  std::string name_;
};

/// The library, which is never closed from here on.
const DynamicLibrary& keep_open(DynamicLibrary library);

}  // namespace tinygrad
