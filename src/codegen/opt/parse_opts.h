#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// Opts as text and back: "LOCAL(0,16) STAGE(2,1,group,2)", as to_string(Opt) writes each. parse_opts throws ValueError for a text of
/// another form, naming the place.
std::string to_string(std::span<const Opt> opts);
std::vector<Opt> parse_opts(std::string_view text);

}  // namespace tinygrad::codegen
