#include "run/inputs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

namespace tinygrad::apps {

namespace {

template <class T>
std::optional<T> number_of(std::string_view text) {
  T out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(out) : std::nullopt;
}

/// Numbers by commas; nothing for another text.
template <class T>
std::optional<std::vector<T>> numbers_of(std::string_view text) {
  std::vector<T> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::optional<T> one = number_of<T>(text.substr(at, end - at));
    if (!one) return {};
    out.push_back(*one);
    at = end + 1;
  }
  return out;
}

std::string listed(const std::vector<Port>& ports) {
  std::string out;
  for (const Port& p : ports) out += fmt::format("\n  {}  {}", p.name, p.type);
  return out;
}

/// Whether the number is one of the type's; of 64 bits as far as a double tells integers apart.
bool holds(DType dtype, double number) {
  if (is_float(dtype)) return true;
  const bool is_bool = dtype == DType::bool_, has_sign = is_signed(dtype);
  const int bits = is_bool ? 1 : std::min(int(itemsize(dtype)) * 8, 53) - (has_sign ? 1 : 0);
  const double most = std::ldexp(1.0, bits) - 1;
  return number == std::floor(number) && number <= most && number >= (has_sign ? -most - 1 : 0);
}

class Maker {
 public:
  Maker(const Program& program, const InputOptions& options) : ports_(program.inputs()), options_(options) {}

  std::vector<Input> make() {
    read_sources();
    read_sizes();
    std::map<std::string, Prepared> made;
    // The sizes of arrays are those of what comes behind.
    for (const auto kind : {is_array, is_other, is_random}) {
      if (kind == is_random) Tensor::manual_seed(options_.seed);
      for (const Port& p : ports_) {
        const auto s = sources_.find(p.name);
        if (s == sources_.end() || !kind(s->second)) continue;
        const Prepared& m = made[p.name] = kind == is_array ? array(p, s->second) : other(p, s->second);
        check_shape(p, m.tensor.shape(), m.how);
        if (kind != is_random) check_indices(p, m);
        for (size_t i = 0; i < p.shape.size() && kind != is_random; ++i) {
          const DeclaredSize& d = p.shape[i];
          int64_t rest = 0;
          const bool is_named = !d.name.empty() && d.size < 0 && !__builtin_sub_overflow(m.tensor.shape()[i], d.offset, &rest);
          if (is_named && rest >= 0) sizes_.emplace(d.name, rest / d.factor);
        }
      }
    }
    std::vector<Input> out;
    for (const Port& p : ports_) {
      const auto m = made.find(p.name);
      if (m == made.end()) continue;
      out.push_back({p.name, m->second.tensor.to(default_device()).contiguous().realize(), m->second.how, m->second.values});
    }
    return out;
  }

 private:
  /// What each input is made of; "random" for what is left if that is asked for.
  void read_sources() {
    bool fills = false;
    std::vector<std::string> nameless;
    for (const std::string& text : options_.inputs) {
      const size_t at = text.find('=');
      const bool has_name = at != std::string::npos && (find(text.substr(0, at)) || !std::filesystem::exists(text));
      if (text == "random") {
        fills = true;
      } else if (!has_name) {
        nameless.push_back(text);
      } else {
        const std::string name = text.substr(0, at);
        if (!find(name)) throw ValueError(fmt::format("run: there is no input '{}'; the inputs are{}", name, listed(ports_)));
        if (!sources_.emplace(name, text.substr(at + 1)).second) throw ValueError(fmt::format("run: the input '{}' is given twice", name));
      }
    }
    std::vector<Port> left;
    for (const Port& p : ports_)
      if (!sources_.contains(p.name) && !p.is_optional) left.push_back(p);
    if (!nameless.empty()) {
      if (nameless.size() > 1 || left.size() != 1)
        throw ValueError(
            fmt::format("run: which input is '{}'? Write --input NAME={}; the inputs are{}", nameless[0], nameless[0], listed(ports_)));
      sources_[left[0].name] = nameless[0];
      left.clear();
    }
    if (!left.empty() && !fills)
      throw ValueError(fmt::format("run: {} input{} not given; write --input NAME=FILE, or --input random for random elements:{}",
                                   left.size(), left.size() == 1 ? " is" : "s are", listed(left)));
    for (const Port& p : left) sources_[p.name] = "random";
    for (const auto& [name, source] : sources_)
      if (!find(name)->dtype)
        throw DTypeError(
            fmt::format("run: the input '{}' is {}, which tg run cannot make; the library can (include/tinygrad/onnx.h, torch_export.h)",
                        name, find(name)->type));
  }

  void read_sizes() {
    std::set<std::string> known;
    for (const Port& p : ports_)
      for (const DeclaredSize& d : p.shape)
        if (!d.name.empty()) known.insert(d.name);
    for (const std::string& text : options_.sizes) {
      const size_t at = std::min(text.find('='), text.size());
      const std::string name = text.substr(0, at);
      const auto size = number_of<int64_t>(std::string_view(text).substr(std::min(at + 1, text.size())));
      if (!size || *size < 0) throw ValueError(fmt::format("run: --size {}: expects NAME=NUMBER", text));
      if (!known.contains(name))
        throw ValueError(
            fmt::format("run: there is no size '{}'; {}", name,
                        known.empty() ? "the inputs have none with names" : fmt::format("the sizes are {}", fmt::join(known, ", "))));
      if (!sizes_.emplace(name, *size).second) throw ValueError(fmt::format("run: the size '{}' is given twice", name));
    }
  }

  const Port* find(const std::string& name) const {
    const auto found = std::ranges::find(ports_, name, &Port::name);
    return found == ports_.end() ? nullptr : &*found;
  }
  static bool is_random(const std::string& source) { return source == "random" || source.starts_with("random:"); }
  static bool is_array(const std::string& source) {
    return !is_random(source) && !is_picture(source) && !is_sound(source) && !numbers_of<double>(source);
  }

  static bool is_other(const std::string& source) { return !is_random(source) && !is_array(source); }

  static int64_t size_of(const DeclaredSize& d, int64_t number) {
    int64_t out = 0;
    if (__builtin_mul_overflow(d.factor, number, &out) || __builtin_add_overflow(out, d.offset, &out) || out < 0)
      throw ShapeError(fmt::format("run: there is no size {} * {} + {} where {} is {}", d.factor, d.name, d.offset, d.name, number));
    return out;
  }
  /// With -1 for what neither the file nor --size says.
  Sizes sizes_of(const Port& p) const {
    Sizes out;
    for (const DeclaredSize& d : p.shape) {
      const auto named = sizes_.find(d.name);
      out.push_back(d.size >= 0 ? d.size : named == sizes_.end() ? -1 : size_of(d, named->second));
    }
    return out;
  }

  void check_shape(const Port& p, const Sizes& shape, const std::string& how) const {
    if (!p.has_shape) return;
    const Sizes declared = sizes_of(p);
    bool fits = shape.size() == declared.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = declared[i] < 0 || declared[i] == shape[i];
    if (!fits)
      throw ShapeError(fmt::format("run: the input '{}' is {}; {} has the shape ({})", p.name, p.type, how, fmt::join(shape, ", ")));
  }

  /// A row that is not there would be read as zeros.
  static void check_indices(const Port& p, const Prepared& given) {
    if (p.index_bound <= 0 || !is_int(given.tensor.dtype()) || given.tensor.numel() == 0) return;
    const auto least = given.tensor.min().cast(DType::int64).item<int64_t>(), most = given.tensor.max().cast(DType::int64).item<int64_t>();
    if (least < -p.index_bound || most >= p.index_bound)
      throw IndexError(
          fmt::format("run: the input '{}' selects rows of {}; {} has {} to {}", p.name, p.index_bound, given.how, least, most));
  }

  Prepared array(const Port& p, const std::string& source) {
    std::string path = source, member;
    if (const size_t at = source.rfind(':'); at != std::string::npos && !std::filesystem::exists(source)) {
      path = source.substr(0, at);
      member = source.substr(at + 1);
    }
    const std::unique_ptr<formats::Reader> file = formats::open(path);
    const std::vector<formats::TensorInfo>& all = file->tensors();
    const auto place = [&](const std::string& name) {
      return size_t(std::ranges::find(all, name, &formats::TensorInfo::name) - all.begin());
    };
    size_t at = member.empty() && all.size() == 1 ? 0 : place(member.empty() ? p.name : member);
    if (at == all.size()) {
      std::vector<std::string> names;
      for (const formats::TensorInfo& t : all) names.push_back(t.name);
      throw ValueError(fmt::format("run: {} has no '{}'; write --input {}={}:NAME with one of {}", path, member.empty() ? p.name : member,
                                   p.name, path, fmt::join(names, ", ")));
    }
    const Tensor x = file->tensor(at);
    if (x.dtype() != *p.dtype)
      throw DTypeError(fmt::format("run: the input '{}' is {}; {} is {}. Convert it, in NumPy by .astype(\"{}\")", p.name, p.type, source,
                                   text_of(x.dtype()), text_of(*p.dtype)));
    return {x, source, {}};
  }

  Prepared other(const Port& p, const std::string& source) {
    if (is_random(source)) return random(p, source);
    if (const auto numbers = numbers_of<double>(source)) return constants(p, source, *numbers);
    const Sizes sizes = sizes_of(p);
    return is_picture(source) ? prepare_picture(source, p, sizes, options_.picture) : prepare_sound(source, p, sizes);
  }

  /// Sizes that nothing says are the least ones.
  Sizes chosen_sizes(const Port& p) const {
    if (!p.has_shape)
      throw ShapeError(fmt::format("run: the file does not say what shape the input '{}' has; write --input {}=random:2,3, or give a file",
                                   p.name, p.name));
    Sizes out = sizes_of(p);
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i] < 0) out[i] = size_of(p.shape[i], p.shape[i].least);
    return out;
  }

  Prepared random(const Port& p, const std::string& source) const {
    Sizes shape;
    if (source == "random") {
      shape = chosen_sizes(p);
    } else {
      const auto given = numbers_of<int64_t>(std::string_view(source).substr(7));
      if (!given || std::ranges::any_of(*given, [](int64_t s) { return s < 0; }))
        throw ValueError(fmt::format("run: --input {}={}: expects random:2,3,4", p.name, source));
      shape.assign(given->begin(), given->end());
      check_shape(p, shape, source);
    }
    const auto named = [&](std::string_view part) { return p.name.find(part) != std::string::npos; };
    const DType dtype = *p.dtype;
    const std::string seeded = fmt::format(", seed {}", options_.seed);
    if (named("mask")) return {Tensor::ones(shape, {.dtype = dtype}), "ones, as it is a mask"};
    if (is_float(dtype)) return {Tensor::rand(shape).cast(dtype), "random from 0 to 1" + seeded};
    if (dtype == DType::bool_) return {Tensor::randint(shape, 0, 2).cast(dtype), "random" + seeded};
    if (named("position") && !shape.empty()) {
      Sizes last(shape.size(), 1);
      last.back() = shape.back();
      return {Tensor::arange(shape.back(), {.dtype = dtype}).reshape(last).expand(shape), "0, 1, 2, ..., as they are positions"};
    }
    const bool is_bytes = dtype == DType::uint8 && shape.size() >= 2;
    const int64_t narrow = itemsize(dtype) == 1 ? 128 : 32768;
    const int64_t bound = p.index_bound > 0 ? (itemsize(dtype) < 4 ? std::min(p.index_bound, narrow) : p.index_bound) : is_bytes ? 256 : 2;
    return {Tensor::randint(shape, 0, bound).cast(dtype), fmt::format("random from 0 to {}", bound - 1) + seeded};
  }

  /// One number for all elements, or a row of them.
  Prepared constants(const Port& p, const std::string& source, const std::vector<double>& numbers) const {
    for (const double n : numbers)
      if (!holds(*p.dtype, n)) throw DTypeError(fmt::format("run: the input '{}' is {}, which does not hold {}", p.name, p.type, n));
    if (numbers.size() == 1) return {Tensor::full(chosen_sizes(p), numbers[0], {.dtype = p.dtype}), source};
    Sizes shape = p.has_shape ? Sizes(std::max<size_t>(p.shape.size(), 1), 1) : Sizes{1};
    shape.back() = int64_t(numbers.size());
    return {Tensor(numbers, shape).cast(*p.dtype), fmt::format("{} numbers", numbers.size())};
  }

  const std::vector<Port>& ports_;
  const InputOptions& options_;
  std::map<std::string, std::string> sources_;
  std::map<std::string, int64_t> sizes_;
};

}  // namespace

std::vector<Input> make_inputs(const Program& program, const InputOptions& options) { return Maker(program, options).make(); }

}  // namespace tinygrad::apps
