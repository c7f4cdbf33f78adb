#pragma once
#include <exception>
#include <string>

#include <gtest/gtest.h>

namespace tinygrad::test {

/// What the error says that the call must throw, as this type.
template <class Expected, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Expected& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another type of error: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace tinygrad::test
