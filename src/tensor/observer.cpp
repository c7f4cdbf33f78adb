#include "tensor/observer.h"

#include <utility>

namespace tinygrad::tensor {

namespace {

constinit thread_local Observer* active = nullptr;

}  // namespace

Observer::Observer() : outer_(std::exchange(active, this)) {}
Observer::~Observer() { active = outer_; }

Observer* Observer::current() { return active; }

Observer::Pause::Pause() : paused_(std::exchange(active, nullptr)) {}
Observer::Pause::~Pause() { active = paused_; }

}  // namespace tinygrad::tensor
