#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace tinygrad::renderer::cstyle {

/// Names of a kernel's variables, each used once.
class Names {
 public:
  /// "i", or with a number where that is taken or means something in C.
  std::string fresh(std::string_view hint);
  /// "x0", "x1", ...
  std::string numbered(std::string_view hint);
  /// The hint and a number, if they are free.
  std::string fresh_with_number(std::string_view hint, int number);
  bool is_taken(std::string_view name) const { return taken_.contains(name); }
  /// The name's variable is out of scope.
  void give_back(const std::string& name) { taken_.erase(name); }

 private:
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, int, std::less<>> next_;
};

}  // namespace tinygrad::renderer::cstyle
