#include "shape/listing.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shape/shape.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

constexpr size_t line_room = 100;  ///< characters of a line, before a part of it gets a name

/// How tightly the outermost operator of a text binds.
enum class Binding : uint8_t { comparison, sum, product, atom };

struct Text {
  std::string text;
  Binding binding = Binding::atom;
};

struct Infix {
  std::string_view sign;
  Binding binding;
};

/// An empty sign where the op has none.
Infix infix_of(Op op) {
  switch (op) {
    case Op::ADD: return {" + ", Binding::sum};
    case Op::SUB: return {" - ", Binding::sum};
    case Op::MUL: return {"*", Binding::product};
    case Op::FDIV: return {"/", Binding::product};
    case Op::FLOORDIV: return {" // ", Binding::product};
    case Op::FLOORMOD: return {" % ", Binding::product};
    case Op::CMPLT: return {" < ", Binding::comparison};
    case Op::CMPNE: return {" != ", Binding::comparison};
    case Op::CMPEQ: return {" == ", Binding::comparison};
    case Op::XOR: return {" ^ ", Binding::comparison};
    case Op::OR: return {" | ", Binding::comparison};
    case Op::AND: return {" & ", Binding::comparison};
    case Op::SHL: return {" << ", Binding::comparison};
    case Op::SHR: return {" >> ", Binding::comparison};
    default: return {{}, Binding::atom};
  }
}

Text infix(const Infix& op, const Text& left, const Text& right) {
  const auto part = [&](const Text& t, bool fits) { return fits ? t.text : "(" + t.text + ")"; };
  const bool chains = op.binding != Binding::comparison;
  const bool left_fits = left.binding > op.binding || (chains && left.binding == op.binding);
  return {part(left, left_fits) + std::string(op.sign) + part(right, right.binding > op.binding), op.binding};
}

/// What to_string() says of an arg, without what a listing says elsewhere.
std::string arg_text(const UOp& u) {
  const auto* reduce = std::get_if<ReduceArg>(&u.arg());
  if (reduce && reduce->axes.empty()) return std::string(name(reduce->op));
  return to_string(u.arg());
}

std::string type_text(const UOp& u) {
  const Shape& shape = shape_of(u);
  return std::string(name(u.dtype())) + (shape.empty() ? "" : " " + to_string(shape));
}

/// Bodies that were named and are still to be listed.
struct Bodies {
  std::vector<std::pair<std::string, UOp>> listed;
  NodeMap<std::string> names;

  std::string name_of(const UOp& body) {
    if (const std::string* known = names.find(body)) return *known;
    std::string name = fmt::format("{}{}", body.is(Op::SINK) ? "kernel" : "function", listed.size());
    names[body] = name;
    listed.emplace_back(name, body);
    return name;
  }
};

/// One closed scope.
class Listing {
 public:
  Listing(Bodies& bodies, std::string& out, size_t indent) : bodies_(bodies), out_(out), indent_(indent) {}

  void list(const UOp& root) {
    if (root.is(Op::LINEAR) && root.arg_as<LinearArg>().kind == 1) return list_program(root);
    const std::vector<UOp> order = toposort(root);
    for (const UOp& u : order)
      for (const UOp& s : scope_sources(u)) ++uses_[s];
    for (const UOp& u : order) texts_[u] = place(u);
    line(texts_[root].text);
  }

 private:
  void line(std::string_view text) { out_ += fmt::format("{:{}}{}\n", "", indent_, text); }

  void define(const std::string& name, const UOp& u, const std::string& text) { line(fmt::format("{} {} = {}", name, type_text(u), text)); }

  Text named(const UOp& u, const std::string& text) {
    std::string name = fmt::format("%{}", next_++);
    if (u.dtype() == DType::void_)
      line(name + " = " + text);
    else
      define(name, u, text);
    return {name};
  }

  /// Nodes that have names of their own, numbers, and what a listing writes otherwise than as OP(source, ...; arg).
  std::optional<Text> leaf(const UOp& u) {
    switch (u.op()) {
      case Op::CONST: return Text{u.arg_as<ConstArg>().value.to_string()};
      case Op::VAR: return Text{std::string(u.arg_as<VarArg>().name.str())};
      case Op::FUNCTION: return Text{bodies_.name_of(u)};
      case Op::RANGE: {
        std::string name = fmt::format("r{}", u.arg_as<RangeArg>().id);
        line(fmt::format("{} = RANGE({}; {})", name, texts_[u.src(0)].text, to_string(u.arg()).substr(name.size() + 1)));
        return Text{name};
      }
      case Op::PARAM: {
        std::string name = fmt::format("p{}", u.arg_as<ParamArg>().slot);
        if (u.src_count() == 0) return Text{name};  // a scalar that a function takes
        define(name, u, fmt::format("PARAM({})", to_string(u.arg())));
        return Text{name};
      }
      case Op::BUFFER: {
        std::string name = fmt::format("b{}", next_buffer_++);
        const BufferArg& a = u.arg_as<BufferArg>();
        define(name, u, fmt::format("BUFFER({})", a.device.empty() ? tinygrad::name(a.scope) : a.device.str()));
        return Text{name};
      }
      default: return std::nullopt;
    }
  }

  Text call(const UOp& u) {
    std::vector<std::string> parts;
    for (const UOp& s : u.src()) parts.push_back(u.is(Op::CALL) && parts.empty() ? bodies_.name_of(s) : texts_[s].text);
    const std::string arg = arg_text(u);
    return {fmt::format("{}({}{}{})", name(u.op()), fmt::join(parts, ", "), arg.empty() ? "" : "; ", arg)};
  }

  /// `memory[i]`, and what else says where and when.
  Text indexed(const UOp& u) {
    std::vector<std::string> parts;
    for (const UOp& s : u.src().subspan(1)) parts.push_back(texts_[s].text);
    const std::string arg = arg_text(u);
    return {fmt::format("{}[{}{}{}]", texts_[u.src(0)].text, fmt::join(parts, ", "), arg.empty() ? "" : "; ", arg)};
  }

  Text written(const UOp& u) {
    if (const Infix op = infix_of(u.op()); !op.sign.empty()) return infix(op, texts_[u.src(0)], texts_[u.src(1)]);
    if (u.is(Op::INDEX)) return indexed(u);
    return call(u);
  }

  /// Names the longest sources until the rest fits into a line.
  void make_room(const UOp& u) {
    for (;;) {
      size_t length = 0;
      const UOp* longest = nullptr;
      for (const UOp& s : u.src()) {
        length += texts_[s].text.size() + 2;
        if (!longest || texts_[s].text.size() > texts_[*longest].text.size()) longest = &s;
      }
      if (length <= line_room || texts_[*longest].text.size() < 20) return;
      texts_[*longest] = named(*longest, texts_[*longest].text);
    }
  }

  Text place(const UOp& u) {
    if (auto known = leaf(u)) return *known;
    make_room(u);
    Text text = written(u);
    const bool shared = uses_.contains(u) && uses_[u] > 1 && text.text.size() > 8 && !is_place(u);
    return shared || u.is(Op::REDUCE) || u.is(Op::CALL) ? named(u, text.text) : text;
  }

  /// An element of memory, not of a vector.
  static bool is_place(const UOp& u) {
    return u.is(Op::INDEX) && (u.src(0).is(Op::PARAM) || u.src(0).is(Op::BUFFER) || u.src(0).is(Op::AFTER));
  }

  /// A number in each lane.
  static bool is_splat(const UOp& u) { return u.is(Op::EXPAND) && u.src(0).is(Op::CONST); }

  void list_program(const UOp& linear) {
    for (const UOp& u : linear.src()) {
      if (u.is(Op::END) || u.is(Op::ENDIF)) {
        indent_ -= 2;
      } else if (auto known = leaf(u)) {
        texts_[u] = *known;
        if (u.is(Op::RANGE)) indent_ += 2;
      } else if (is_place(u) || is_splat(u)) {
        texts_[u] = is_splat(u) ? texts_[u.src(0)] : written(u);
      } else if (u.dtype() == DType::void_) {
        line(written(u).text);
        if (u.is(Op::IF)) indent_ += 2;
      } else {
        texts_[u] = named(u, written(u).text);
      }
    }
  }

  Bodies& bodies_;
  std::string& out_;
  size_t indent_;
  NodeMap<size_t> uses_;
  NodeMap<Text> texts_;
  size_t next_ = 0, next_buffer_ = 0;
};

}  // namespace

std::string print_listing(const UOp& root) {
  Bodies bodies;
  std::string out;
  Listing(bodies, out, 0).list(root);
  for (size_t i = 0; i < bodies.listed.size(); ++i) {
    const auto [name, body] = bodies.listed[i];
    const std::string arg = to_string(body.arg());
    out += fmt::format("\n{}{}:\n", name, arg.empty() ? "" : " " + arg);
    Listing(bodies, out, 2).list(body.is(Op::FUNCTION) ? body.src(0) : body);
  }
  return out;
}

}  // namespace tinygrad
