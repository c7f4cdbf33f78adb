#include "runtime/metal/objc.h"

#include "base/dylib.h"

namespace tinygrad::runtime::metal {

const ObjectiveC& objective_c() {
  static const ObjectiveC opened = [] {
    const DynamicLibrary& library = keep_open(DynamicLibrary::open({"/usr/lib/libobjc.A.dylib", "/usr/lib/libobjc.dylib"}));
    ObjectiveC o;
    o.get_class = library.symbol<Id(const char*)>("objc_getClass");
    o.selector = library.symbol<void*(const char*)>("sel_registerName");
    o.send = library.symbol<void()>("objc_msgSend");
    o.pool_push = library.symbol<void*()>("objc_autoreleasePoolPush");
    o.pool_pop = library.symbol<void(void*)>("objc_autoreleasePoolPop");
    return o;
  }();
  return opened;
}

Id ns_string(const std::string& text) {
  return send(objective_c().get_class("NSString"), "stringWithUTF8String:", static_cast<const char*>(text.c_str()));
}

std::string text_of(Id ns_string) {
  const char* text = ns_string ? send<const char*>(ns_string, "UTF8String") : nullptr;
  return text ? text : "";
}

std::string description_of(Id ns_error) { return ns_error ? text_of(send(ns_error, "localizedDescription")) : "unknown error"; }

}  // namespace tinygrad::runtime::metal
