#pragma once
/// The part of Objective-C's runtime that is needed to talk to Metal, opened at run time: no header of Apple's, no compiler for
/// Objective-C.

#include <string>
#include <utility>

namespace tinygrad::runtime::metal {

using Id = void*;

struct ObjectiveC {
  Id (*get_class)(const char* name) = nullptr;
  void* (*selector)(const char* name) = nullptr;
  void (*send)() = nullptr;  ///< objc_msgSend, to be called as what the method is
  void* (*pool_push)() = nullptr;
  void (*pool_pop)(void* pool) = nullptr;
};

/// Opened at the first use. Throws DeviceError where there is none: elsewhere than on Apple's systems.
const ObjectiveC& objective_c();

/// [object selector:arguments...]
template <class Result = Id, class... A>
Result send(Id object, const char* selector, A... arguments) {
  const ObjectiveC& o = objective_c();
  return reinterpret_cast<Result (*)(Id, void*, A...)>(o.send)(object, o.selector(selector), arguments...);
}

/// What methods give without keeping goes away with the innermost of these.
class Pool {
 public:
  Pool() : pool_(objective_c().pool_push()) {}
  ~Pool() { objective_c().pool_pop(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  void* pool_;
};

/// An object that is kept.
class Object {
 public:
  Object() = default;
  /// Takes over one that the caller owns: from methods called new...
  static Object owned(Id id) {
    Object o;
    o.id_ = id;
    return o;
  }
  static Object kept(Id id) { return owned(id ? send(id, "retain") : nullptr); }
  ~Object() {
    if (id_) send<void>(id_, "release");
  }
  Object(Object&& other) noexcept : id_(std::exchange(other.id_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }

  Id get() const { return id_; }
  explicit operator bool() const { return id_ != nullptr; }

 private:
  Id id_ = nullptr;
};

/// Within a Pool.
Id ns_string(const std::string& text);
std::string text_of(Id ns_string);
/// "unknown error" for none.
std::string description_of(Id ns_error);

}  // namespace tinygrad::runtime::metal
