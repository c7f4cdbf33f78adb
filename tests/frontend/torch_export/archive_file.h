#pragma once
/// Writes small archives of torch.export for tests, right ones and wrong ones.

#include <map>
#include <string>
#include <vector>

#include "base/archives.h"

namespace tinygrad::test::pt2 {

using Replacements = std::vector<std::pair<std::string, std::string>>;

inline std::string meta(const std::string& sizes, const std::string& strides, int dtype = 7,
                        const std::string& offset = R"({"as_int": 0})") {
  return R"({"dtype": )" + std::to_string(dtype) + R"(, "sizes": [)" + sizes +
         R"(], "requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [)" + strides + R"(], "storage_offset": )" +
         offset + R"(, "layout": 7})";
}
inline const std::string two = R"({"as_int": 2})", one = R"({"as_int": 1})", three = R"({"as_int": 3})";
inline const std::string symbol =
    R"json({"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 3}}})json";

/// y = x + w, where x is (s0, 2) and w a parameter (2).
inline std::string program(const Replacements& replaced = {}) {
  std::string out =
      R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "p_w"}}, {"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "add"}}],)"
      R"( "nodes": [{"target": "torch.ops.aten.add.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},)"
      R"( {"name": "other", "arg": {"as_tensor": {"name": "p_w"}}, "kind": 1}], "outputs": [{"as_tensor": {"name": "add"}}], "metadata": {},)"
      R"( "is_hop_single_tensor_return": null, "name": "add"}], "tensor_values": {"p_w": )" +
      meta(two, one) + R"(, "x": )" + meta(symbol + ", " + two, two + ", " + one) + R"(, "add": )" +
      meta(symbol + ", " + two, two + ", " + one) +
      R"(}, "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": false, "custom_obj_values": {}, "sym_float_values": {}},)"
      R"( "signature": {"input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}}, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],)"
      R"( "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "add"}}}}]}, "module_call_graph": [{"fqn": "", "signature": {"inputs": [], "outputs": [],)"
      R"( "in_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]",)"
      R"( "out_spec": "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]", "forward_arg_names": ["x"]}}], "metadata": {}, "treespec_namedtuple_fields": {}},)"
      R"( "opset_version": {"aten": 10}, "range_constraints": {"s0": {"min_val": 2, "max_val": 9}}, "schema_version": {"major": 8, "minor": 20},)"
      R"( "verifiers": ["TRAINING"], "torch_version": "2.13.0", "guards_code": []})";
  for (const auto& [from, to] : replaced) {
    const size_t at = out.find(from);
    if (at == std::string::npos) return "no '" + from + "' in the program";
    out.replace(at, from.size(), to);
  }
  return out;
}
inline std::string weights(const std::string& tensor_meta = meta(two, one), const std::string& more = "") {
  return R"({"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": )" + tensor_meta + more +
         "}}}";
}

/// The members of a right archive by their names, of which some may be replaced, or (by "-") left out.
inline std::string archive(const std::string& json = program(), const std::map<std::string, std::string>& replaced = {},
                           bool deflate = false) {
  std::map<std::string, std::string> members{{"archive_format", "pt2"},
                                             {"archive_version", "0"},
                                             {"byteorder", "little"},
                                             {"models/model.json", json},
                                             {"data/weights/model_weights_config.json", weights()},
                                             {"data/weights/weight_0", std::string("\0\0\x80\x3f\0\0\0\x40", 8)},
                                             {"data/constants/model_constants_config.json", R"({"config": {}})"}};
  for (const auto& [name, content] : replaced) members[name] = content;
  std::vector<ZipMember> out;
  for (const auto& [name, content] : members)
    if (content != "-") out.push_back({"net/" + name, content, deflate});
  return zip_of(out);
}

}  // namespace tinygrad::test::pt2
