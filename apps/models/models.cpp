#include "models/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tinygrad/errors.h>

namespace tinygrad::apps {

namespace {

struct Entry {
  std::string_view name;
  Workload (*make)(const Spread&);
};
constexpr Entry entries[] = {
    {"resnet50", resnet50_inference},
    {"resnet50-train", resnet50_training},
    {"gpt2-12", [](const Spread& s) { return gpt2_inference(12, s); }},
    {"gpt2-2-train", [](const Spread& s) { return gpt2_training(2, s); }},
    {"mnist-train", mnist_training},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& e : entries) names.emplace_back(e.name);
  return names;
}

Workload make_workload(std::string_view name, const Spread& spread) {
  for (const Entry& e : entries)
    if (e.name == name) return e.make(spread);
  throw ValueError(fmt::format("unknown model '{}'; known are {}", name, fmt::join(model_names(), ", ")));
}

}  // namespace tinygrad::apps
