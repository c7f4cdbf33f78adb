#include "support/fake_cuda/ptx_group.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "dtype/scalar.h"
#include "target/target.h"

namespace tinygrad::test {
namespace {

constexpr size_t most_declared = 48 << 10;  ///< bytes of shared memory

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

/// At commas that are in no braces.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '{') ++depth;
    if (i < text.size() && text[i] == '}') --depth;
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const auto part = trimmed(text.substr(begin, i - begin)); !part.empty()) parts.push_back(part);
      begin = i + 1;
    }
  }
  return parts;
}

int64_t as_signed(uint64_t bits, int width) { return static_cast<int64_t>(bits << (64 - width)) >> (64 - width); }
/// The integer of a type, extended by its own sign.
uint64_t extended(uint64_t bits, char kind, int width) {
  return kind == 's' ? static_cast<uint64_t>(as_signed(bits, width)) : cut(bits, width);
}

DType float_of(char kind, int bits) {
  if (kind == 'h') return DType::bfloat16;
  return bits == 16 ? DType::float16 : bits == 32 ? DType::float32 : DType::float64;
}
double real(uint64_t bits, char kind, int width) {
  if (width == 64) return std::bit_cast<double>(bits);
  if (width == 32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return Scalar::from_storage_bits(cut(bits, 16), float_of(kind, width)).as_double();
}
uint64_t real_bits(double value, char kind, int width) {
  if (width == 64) return std::bit_cast<uint64_t>(value);
  if (width == 32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return Scalar::from_double(value, float_of(kind, width)).storage_bits();
}

/// Rounded towards zero, and to the nearest number that the type has.
uint64_t to_integer(double x, char kind, int width) {
  if (std::isnan(x)) return width == 64 ? uint64_t{1} << 63 : 0;
  const bool has_sign = kind == 's';
  const double high = std::ldexp(1.0, has_sign ? width - 1 : width), low = has_sign ? -high : 0;
  const double whole = std::trunc(x);
  if (whole >= high) return cut(has_sign ? (uint64_t{1} << (width - 1)) - 1 : ~uint64_t{0}, width);
  if (whole <= low) return cut(has_sign ? uint64_t{1} << (width - 1) : 0, width);
  return cut(has_sign ? static_cast<uint64_t>(static_cast<int64_t>(whole)) : static_cast<uint64_t>(whole), width);
}

double to_tf32(double x) {
  if (!std::isfinite(x)) return x;
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(x)) + 0x1000;
  return static_cast<double>(std::bit_cast<float>(bits & 0xffffe000));
}

DType fp8_of(std::string_view type) { return type.starts_with("e4m3") ? DType::fp8e4m3 : DType::fp8e5m2; }

/// Saturated, as the instruction has it.
uint64_t fp8_bits(double x, std::string_view type) {
  const DType d = fp8_of(type);
  const double most = d == DType::fp8e4m3 ? 448 : 57344;
  return Scalar::from_double(std::isnan(x) ? x : std::clamp(x, -most, most), d).storage_bits();
}

}  // namespace

// Instructions.

PtxMachine::Type PtxMachine::type_of(std::string_view name) {
  if (name == "pred") return {'p', 1};
  if (name == "bf16") return {'h', 16};
  return {name[0], std::stoi(std::string(name.substr(1)))};
}

uint64_t PtxMachine::arithmetic(Alu op, Type type, std::span<const uint64_t> s, int line) {
  const int width = type.bits;
  if (type.is_real()) {
    const auto at = [&](size_t i) { return i < s.size() ? real(s[i], type.kind, width) : 0; };
    const double a = at(0), b = at(1), c = at(2);
    const auto rounded = [&](double x) { return real_bits(x, type.kind, width); };
    const auto larger = [&] { return std::isnan(a) ? s[1] : std::isnan(b) ? s[0] : a > b || (a == b && !std::signbit(a)) ? s[0] : s[1]; };
    // In double, rounded again: for narrower types the same as once.
    switch (op) {
      case Alu::add: return rounded(a + b);
      case Alu::sub: return rounded(a - b);
      case Alu::mul: return rounded(a * b);
      case Alu::div: return rounded(a / b);
      case Alu::rcp: return rounded(1 / a);
      case Alu::sqrt: return rounded(std::sqrt(a));
      case Alu::neg: return s[0] ^ (uint64_t{1} << (width - 1));
      case Alu::abs: return cut(s[0], width - 1);
      case Alu::max_nan: return std::isnan(a) || std::isnan(b) ? rounded(std::numeric_limits<double>::quiet_NaN()) : larger();
      case Alu::max: return larger();
      case Alu::fma:
        if (width != 32) return rounded(std::fma(a, b, c));
        return std::bit_cast<uint32_t>(std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
      default: fail(line, "floats have no such instruction");
    }
  }
  const uint64_t a = extended(s[0], type.kind, width), b = s.size() > 1 ? extended(s[1], type.kind, width) : 0, c = s.size() > 2 ? s[2] : 0;
  const bool has_sign = type.kind == 's';
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  const uint64_t amount = s.size() > 1 ? std::min<uint64_t>(cut(s[1], 32), uint64_t(width)) : 0;
  switch (op) {
    case Alu::add: return a + b;
    case Alu::sub: return a - b;
    case Alu::mul: return a * b;
    case Alu::mad:
    case Alu::mad_wide: return a * b + c;
    case Alu::neg: return 0 - a;
    case Alu::max: return has_sign ? static_cast<uint64_t>(std::max(x, y)) : std::max(a, b);
    case Alu::min: return has_sign ? static_cast<uint64_t>(std::min(x, y)) : std::min(a, b);
    case Alu::and_: return a & b;
    case Alu::or_: return a | b;
    case Alu::xor_: return a ^ b;
    case Alu::not_: return ~a;
    case Alu::shl: return amount >= uint64_t(width) ? 0 : a << amount;
    case Alu::shr:
      if (has_sign) return static_cast<uint64_t>(x >> std::min<uint64_t>(amount, 63));
      return amount >= 64 ? 0 : a >> amount;
    case Alu::div:
    case Alu::rem: {
      // What the manual leaves open must not matter.
      const bool overflows = has_sign && y == -1 && x == (std::numeric_limits<int64_t>::min() >> (64 - width));
      if (b == 0 || overflows) return 0x5eed5eed5eed5eed;
      if (has_sign) return static_cast<uint64_t>(op == Alu::div ? x / y : x % y);
      return op == Alu::div ? a / b : a % b;
    }
    default: fail(line, "integers have no such instruction");
  }
}

bool PtxMachine::compared(Relation how, Type type, uint64_t p, uint64_t q) {
  const auto decide = [&](auto a, auto b) {
    switch (how) {
      case Relation::eq: return a == b;
      case Relation::ne:
      case Relation::neu: return a != b;
      case Relation::lt: return a < b;
      case Relation::ge: return a >= b;
      case Relation::gt: return a > b;
      default: return false;
    }
  };
  if (type.is_real()) {
    const double a = real(p, type.kind, type.bits), b = real(q, type.kind, type.bits);
    if (std::isnan(a) || std::isnan(b)) return how == Relation::nan || how == Relation::neu;
    return decide(a, b);
  }
  if (type.kind == 's') return decide(as_signed(p, type.bits), as_signed(q, type.bits));
  return decide(cut(p, type.bits), cut(q, type.bits));
}

uint64_t PtxMachine::converted(const Instruction& i, std::span<const uint64_t> s) {
  const std::string& to_name = i.name[i.name.size() - 2];
  const auto has = [&](std::string_view part) { return std::ranges::find(i.name, part) != i.name.end(); };
  if (to_name == "tf32") return real_bits(to_tf32(real(s[0], 'f', 32)), 'f', 32);
  if (to_name == "e4m3x2" || to_name == "e5m2x2")
    return fp8_bits(real(s[0], 'f', 32), to_name) << 8 | fp8_bits(real(s[1], 'f', 32), to_name);
  if (to_name == "f16x2") {
    const DType from = fp8_of(i.name.back());
    const auto half = [&](uint64_t byte) { return Scalar::from_storage_bits(byte, from).cast(DType::float16).storage_bits(); };
    return half(s[0] & 255) | half(s[0] >> 8 & 255) << 16;
  }
  const Type from = i.type, to = type_of(to_name);
  if (from.kind == 'b' || to.kind == 'b') fail(i.line, "there is no conversion of mere bits");
  if (from.is_real()) {
    const double x = real(s[0], from.kind, from.bits);
    if (to.is_real()) return real_bits(has("rzi") ? std::trunc(x) : x, to.kind, to.bits);
    if (!has("rzi")) fail(i.line, "a conversion to an integer must say how it rounds");
    return to_integer(x, to.kind, to.bits);
  }
  const uint64_t x = extended(s[0], from.kind, from.bits);
  if (!to.is_real()) return x;
  if (!has("rn")) fail(i.line, "a conversion from an integer must say how it rounds");
  const Scalar number = from.kind == 's' ? Scalar::from_int(static_cast<int64_t>(x), DType::int64) : Scalar::from_uint(x, DType::uint64);
  return number.cast(float_of(to.kind, to.bits)).storage_bits();
}

/// cp.async: one of the ways past the first cache or through it, or what is about sets of copies.
void PtxMachine::understand_copy(Instruction& i) {
  const std::string& what = i.name.at(2);
  i.does = what == "commit_group" ? Does::commit : what == "wait_group" ? Does::wait : Does::copy;
  if (i.does != Does::copy) return;
  const uint64_t bytes = i.operands.at(2).bits;
  const bool fits = what == "cg" ? bytes == 16 : what == "ca" && (bytes == 4 || bytes == 8 || bytes == 16);
  if (!fits || i.name.at(3) != "shared" || i.name.at(4) != "global") fail(i.line, "there is no such copy");
}

/// wgmma, and fences for it.
void PtxMachine::understand_products(Instruction& i) {
  static const std::map<std::string_view, Does> kDoes{{"mma_async", Does::multiply_shared},
                                                      {"fence", Does::order_registers},
                                                      {"commit_group", Does::commit_products},
                                                      {"wait_group", Does::wait_products}};
  if (i.name[0] == "fence") {
    if (i.name.size() != 4 || i.name[1] != "proxy" || i.name[2] != "async" || i.name[3] != "shared::cta") fail(i.line, "unknown fence");
    i.does = Does::order_memory;
    return;
  }
  i.does = kDoes.at(i.name.at(1));
  if (i.name.at(2) != "sync" || i.name.at(3) != "aligned") fail(i.line, "it must be .sync.aligned");
}

void PtxMachine::understand(Instruction& i) {
  static const std::map<std::string_view, Does> kDoes{{"bar", Does::barrier}, {"mma", Does::multiply}, {"bra", Does::branch},
                                                      {"ret", Does::ret},     {"ld", Does::access},    {"st", Does::access},
                                                      {"mov", Does::move},    {"cvta", Does::move},    {"setp", Does::set},
                                                      {"selp", Does::select}, {"cvt", Does::convert}};
  static const std::map<std::string_view, Alu> kAlus{{"add", Alu::add},   {"sub", Alu::sub},  {"mul", Alu::mul}, {"mad", Alu::mad},
                                                     {"fma", Alu::fma},   {"div", Alu::div},  {"rem", Alu::rem}, {"rcp", Alu::rcp},
                                                     {"sqrt", Alu::sqrt}, {"neg", Alu::neg},  {"abs", Alu::abs}, {"max", Alu::max},
                                                     {"min", Alu::min},   {"and", Alu::and_}, {"or", Alu::or_},  {"xor", Alu::xor_},
                                                     {"not", Alu::not_},  {"shl", Alu::shl},  {"shr", Alu::shr}};
  static const std::map<std::string_view, Relation> kRelations{{"eq", Relation::eq},  {"ne", Relation::ne}, {"lt", Relation::lt},
                                                               {"ge", Relation::ge},  {"gt", Relation::gt}, {"neu", Relation::neu},
                                                               {"nan", Relation::nan}};
  const auto found = kDoes.find(i.name[0]);
  i.does = found == kDoes.end() ? Does::compute : found->second;
  if (i.name[0] == "tcgen05" || i.name[0] == "mbarrier" || (i.name[0] == "fence" && i.name[1] == "mbarrier_init")) {
    i.does = Does::tensor_memory;
    return;
  }
  if (i.name[0] == "cp") return understand_copy(i);
  if (i.name[0] == "wgmma" || i.name[0] == "fence") return understand_products(i);
  const bool is_narrow_pair = i.name.back().starts_with("e4m3") || i.name.back().starts_with("e5m2");
  if (i.does != Does::barrier && i.does != Does::branch && i.does != Does::ret && !is_narrow_pair) i.type = type_of(i.name.back());
  if (i.does == Does::move && i.operands[0].kind == Operand::list) i.does = Does::unpack;
  if (i.does == Does::move && i.operands[1].name.starts_with("%ctaid.")) i.does = Does::group_id;
  if (i.does == Does::set) i.relation = kRelations.at(i.name[1]);
  if (i.does != Does::compute) return;
  const auto alu = kAlus.find(i.name[0]);
  if (alu == kAlus.end()) fail(i.line, i.name[0] + " is unknown");
  i.alu = alu->second;
  const bool may_fuse = i.alu == Alu::add || i.alu == Alu::sub || i.alu == Alu::mul;
  if (may_fuse && i.name.back() == "f16" && i.name[1] != "rn") fail(i.line, "an assembler may fuse this with another one");
  if (i.name.size() > 2 && i.name[1] == "wide") i.alu = Alu::mad_wide;
  if (i.name.size() > 2 && i.name[1] == "NaN") i.alu = Alu::max_nan;
}

// Text.

PtxMachine::PtxMachine(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) read_line(line, number);
  shared_bytes_ = (shared_bytes_ + 15) / 16 * 16;
  if (!given_.empty()) variables_[given_] = shared_bytes_;  // behind what is declared
}

void PtxMachine::read_line(const std::string& whole, int number) {
  std::string_view line = trimmed(std::string_view(whole).substr(0, whole.find("//")));
  if (line.empty() || line == "{" || line == "}" || line == ")") return;
  if (line.starts_with(".visible .entry ")) {
    entry_ = line.substr(16, line.find('(') - 16);
  } else if (line.starts_with(".param ")) {
    parameters_.emplace_back(trimmed(line.substr(line.rfind(' ') + 1, line.find(',') - line.rfind(' ') - 1)));
  } else if (line.starts_with(".extern .shared ")) {
    const size_t open = line.find('['), begin = line.rfind(' ', open) + 1;
    given_ = line.substr(begin, open - begin);
  } else if (line.starts_with(".shared ") || line.starts_with(".local ")) {
    const size_t open = line.find('['), begin = line.rfind(' ', open) + 1;
    size_t& total = line[1] == 's' ? shared_bytes_ : local_bytes_;
    total = (total + 15) / 16 * 16;
    variables_[std::string(line.substr(begin, open - begin))] = total;
    total += std::stoul(std::string(line.substr(open + 1)));
    if (shared_bytes_ > most_declared) fail(number, "declares more shared memory than a kernel may");
  } else if (line[0] == '.') {
    return;  // registers are made as they are named; versions are the assembler's to check
  } else if (line.ends_with(':')) {
    labels_[std::string(line.substr(0, line.size() - 1))] = code_.size();
  } else {
    if (!line.ends_with(';')) fail(number, "expected ';'");
    line.remove_suffix(1);
    Instruction i;
    i.line = number;
    if (line[0] == '@') {
      const size_t space = line.find(' ');
      i.guard_negated = line[1] == '!';
      i.guard = register_index(line.substr(i.guard_negated ? 2 : 1, space - (i.guard_negated ? 2 : 1)));
      line = trimmed(line.substr(space));
    }
    const size_t space = std::min(line.find(' '), line.size());
    std::istringstream name{std::string(line.substr(0, space))};
    for (std::string part; std::getline(name, part, '.');) i.name.push_back(part);
    for (const std::string_view part : split(line.substr(space))) i.operands.push_back(read_operand(part));
    understand(i);
    code_.push_back(std::move(i));
  }
}

int PtxMachine::register_index(std::string_view name) {
  return registers_.try_emplace(std::string(name), static_cast<int>(registers_.size())).first->second;
}

PtxMachine::Operand PtxMachine::read_operand(std::string_view text) {
  const std::string t(text);
  if (text[0] == '%' && text.find('.') == text.npos) return {.kind = Operand::reg, .index = register_index(text), .name = t};
  if (text.starts_with("0f") || text.starts_with("0d"))
    return {.kind = Operand::number, .bits = std::stoull(t.substr(2), nullptr, 16), .name = t};
  if (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-') {
    const uint64_t bits = text[0] == '-' ? static_cast<uint64_t>(std::stoll(t)) : std::stoull(t, nullptr, 0);
    return {.kind = Operand::number, .bits = bits, .name = t};
  }
  if (text[0] == '{') {
    Operand o{.kind = Operand::list, .name = t};
    for (const std::string_view part : split(text.substr(1, text.size() - 2))) o.list_of.push_back(read_operand(part));
    return o;
  }
  if (text[0] == '[') {
    const std::string inside = t.substr(1, t.size() - 2);
    const size_t sign = inside.find('+');  // also of what is negative: "[%rd0+-8]"
    Operand o{.kind = Operand::address, .name = inside.substr(0, sign)};
    if (o.name.find('-') != o.name.npos) throw std::runtime_error("PTX: an address is a register plus a number: " + t);
    if (sign != inside.npos) o.bits = static_cast<uint64_t>(std::stoll(inside.substr(sign + 1)));
    if (inside[0] == '%') o.index = register_index(o.name);
    return o;
  }
  return {.kind = Operand::text, .name = t};
}

// Running.

void PtxMachine::run(std::span<const uint64_t> arguments, std::span<const PtxBuffer> buffers, const LaunchDims& dims, size_t given_bytes) {
  if (arguments.size() != parameters_.size()) throw std::runtime_error("PTX: another number of arguments than of parameters");
  arguments_ = arguments;
  buffers_ = buffers;
  const auto count = [](const int64_t(&n)[3]) { return size_t(n[0] * n[1] * n[2]); };
  for (size_t g = 0; g < count(dims.global); ++g) {
    Group group;
    group.shared.assign(shared_bytes_ + given_bytes, std::byte{0xa5});
    group.hidden.assign(group.shared.size(), 1);
    const auto place = [](size_t n, const int64_t(&of)[3], unsigned(&id)[3]) {
      for (int d = 0; d < 3; ++d) id[d] = unsigned(n % size_t(of[d])), n /= size_t(of[d]);
    };
    place(g, dims.global, group.id);
    group.items.resize(count(dims.local));
    for (size_t i = 0; i < group.items.size(); ++i) {
      Item& item = group.items[i];
      item.registers.assign(registers_.size(), 0xdeadbeefcafef00d);
      item.local.assign(local_bytes_, std::byte{0xa5});
      item.changed.assign(registers_.size(), 1);
      place(i, dims.local, item.id);
    }
    while (!group.items[0].done) {
      for (Item& item : group.items) step(group, item);  // up to what items do together
      const size_t at = group.items[0].pc;
      for (const Item& item : group.items)
        if (item.pc != at) fail(code_[std::min(at, code_.size() - 1)].line, "the items of a group are not at the same place");
      if (group.items[0].done) break;
      for (Item& item : group.items) {
        if (code_[at].does == Does::barrier && item.has_accessed) fail(code_[at].line, "no fence between it and tensor memory's accesses");
        item.is_behind = false;
      }
      if (code_[at].does == Does::multiply)
        for (size_t first = 0; first < group.items.size(); first += 32) multiply(group, first);
      if (code_[at].does == Does::multiply_shared)
        for (size_t first = 0; first < group.items.size(); first += 128) multiply_shared(group, first);
      for (Item& item : group.items) ++item.pc;
    }
    if (group.columns != 0) throw std::runtime_error("PTX: memory of tensor cores was not given back");
  }
}

void PtxMachine::show_writes(Group& group, Item& item) {
  for (const auto& [first, behind] : item.own_writes)
    std::fill(group.hidden.begin() + std::ptrdiff_t(first), group.hidden.begin() + std::ptrdiff_t(behind), uint8_t{0});
  item.own_writes.clear();
}

void PtxMachine::note_write(Group& group, Item& item, const std::byte* at, size_t bytes) {
  if (at < group.shared.data() || at >= group.shared.data() + group.shared.size()) return;
  const auto first = size_t(at - group.shared.data());
  std::fill_n(group.hidden.begin() + std::ptrdiff_t(first), bytes, uint8_t{1});
  item.own_writes.emplace_back(first, first + bytes);
}

void PtxMachine::end_products(Item& item, const Instruction& i) {
  if (i.operands.at(0).bits != 0) fail(i.line, "waits for all products but some: not known");
  for (const auto& [number, sum] : item.committed) item.registers[size_t(number)] = sum;
  item.committed.clear();
}

void PtxMachine::step(Group& group, Item& item) {
  while (true) {
    const Instruction& i = code_[item.pc];
    const bool skipped = i.guard >= 0 && (item.registers[size_t(i.guard)] & 1) == (i.guard_negated ? 1 : 0);
    if (i.does == Does::barrier || i.does == Does::multiply || i.does == Does::multiply_shared) return;
    if (i.does == Does::ret) {
      item.done = true;
      return;
    }
    if (i.does == Does::branch && !skipped) {
      item.pc = labels_.find(i.operands[0].name)->second;
      continue;
    }
    ++item.pc;
    if (skipped || i.does == Does::branch) continue;
    if (i.does == Does::access)
      access(group, item, i);
    else if (i.does == Does::copy)
      copy(group, item, i);
    else if (i.does == Does::commit)
      item.copies.emplace_back();
    else if (i.does == Does::wait)
      wait(group, item, i.operands.at(0).bits);
    else if (i.does == Does::order_registers)
      std::ranges::fill(item.changed, uint8_t{0});
    else if (i.does == Does::order_memory)
      show_writes(group, item);
    else if (i.does == Does::commit_products)
      item.committed.merge(item.products);
    else if (i.does == Does::wait_products)
      end_products(item, i);
    else if (i.does == Does::tensor_memory)
      use_tensor_memory(group, item, i);
    else if (i.does == Does::group_id)
      item.registers[size_t(i.operands[0].index)] = group.id[i.operands[1].name.back() - 'x'];
    else
      compute(item, i);
  }
}

uint64_t PtxMachine::value(const Item& item, const Operand& o) const {
  if (o.kind == Operand::reg) return item.registers[size_t(o.index)];
  if (o.kind == Operand::number) return o.bits;
  if (o.name.starts_with("%tid.")) return item.id[o.name.back() - 'x'];
  if (const auto variable = variables_.find(o.name); variable != variables_.end()) return variable->second;
  throw std::runtime_error("PTX: " + o.name + " has no value");
}

void PtxMachine::compute(Item& item, const Instruction& i) {
  if (i.does == Does::unpack) {
    const uint64_t x = value(item, i.operands[1]);
    for (size_t k = 0; k < 2; ++k) set(item, i.operands[0].list_of[k].index, x >> (16 * k) & 0xffff);
    return;
  }
  uint64_t sources[3] = {};
  const size_t count = i.operands.size() - 1;
  for (size_t k = 0; k < count; ++k) {
    const Operand& o = i.operands[k + 1];
    sources[k] = o.kind != Operand::list ? value(item, o) : cut(value(item, o.list_of[0]), 16) | cut(value(item, o.list_of[1]), 16) << 16;
  }
  const std::span<const uint64_t> s(sources, count);
  uint64_t result = 0;
  int width = i.type.bits;
  switch (i.does) {
    case Does::move:
      result = s[0];
      if (i.name[0] == "cvta") width = 64;
      break;
    case Does::set:
      result = compared(i.relation, i.type, s[0], s[1]);
      width = 1;
      break;
    case Does::select: result = s[2] & 1 ? s[0] : s[1]; break;
    case Does::convert: {
      result = converted(i, s);
      const std::string& to = i.name[i.name.size() - 2];
      width = to == "tf32" || to == "f16x2" ? 32 : to.ends_with("x2") ? 16 : std::max(16, type_of(to).bits);
      break;
    }
    default:
      result = arithmetic(i.alu, i.type, s, i.line);
      if (i.alu == Alu::mad_wide) width = 64;
  }
  set(item, i.operands[0].index, cut(result, width));
}

void PtxMachine::set(Item& item, int number, uint64_t value) {
  item.registers[size_t(number)] = value;
  item.changed[size_t(number)] = 1;
}

std::byte* PtxMachine::resolve(Group& group, Item& item, const Instruction& i, std::string_view space, uint64_t address, size_t bytes) {
  if (address % bytes != 0) fail(i.line, fmt::format("the address {:#x} is not aligned to {} bytes", address, bytes));
  const auto inside = [&](std::span<std::byte> memory, uint64_t begin) {
    return address >= begin && address - begin + bytes <= memory.size();
  };
  if (space == "shared" && inside(group.shared, 0)) return group.shared.data() + address;
  if (space == "local" && inside(item.local, 0)) return item.local.data() + address;
  if (space == "global")
    for (const PtxBuffer& b : buffers_)
      if (inside(b.bytes, b.address)) return b.bytes.data() + (address - b.address);
  fail(i.line, fmt::format("{} bytes at {:#x} of {} memory are outside", bytes, address, space));
}

void PtxMachine::access(Group& group, Item& item, const Instruction& i) {
  const bool is_load = i.name[0] == "ld";
  const Operand &at = i.operands[is_load ? 1 : 0], &data = i.operands[is_load ? 0 : 1];
  const std::string& space = i.name[1];
  const size_t each = size_t(i.type.bits) / 8;
  if (space == "param") {
    const auto found = std::ranges::find(parameters_, at.name);
    item.registers[size_t(data.index)] = cut(arguments_[size_t(found - parameters_.begin())], i.type.bits);
    return;
  }
  const std::vector<Operand> one{data};
  const std::vector<Operand>& lanes = data.kind == Operand::list ? data.list_of : one;
  std::byte* memory = resolve(group, item, i, space, item.registers[size_t(at.index)] + at.bits, each * lanes.size());
  for (size_t k = 0; k < lanes.size(); ++k, memory += each) {
    uint64_t x = is_load ? 0 : value(item, lanes[k]);
    if (is_load) {
      std::memcpy(&x, memory, each);
      set(item, lanes[k].index, cut(extended(x, i.type.kind, i.type.bits), std::max(16, i.type.bits)));
    } else {
      std::memcpy(memory, &x, each);
      note_write(group, item, memory, each);
    }
  }
}

/// Of so many bytes as the last operand says, the others are zeros.
void PtxMachine::copy(Group& group, Item& item, const Instruction& i) {
  const size_t bytes = i.operands[2].bits, read = i.operands.size() > 3 ? size_t(value(item, i.operands[3])) : bytes;
  if (read > bytes) fail(i.line, "more is read than is written");
  const auto place = [&](const Operand& at) { return item.registers[size_t(at.index)] + at.bits; };
  Copy c{.to = resolve(group, item, i, "shared", place(i.operands[0]), bytes), .bytes = std::vector<std::byte>(bytes)};
  if (read > 0) std::memcpy(c.bytes.data(), resolve(group, item, i, "global", place(i.operands[1]), bytes), read);
  item.copies.back().push_back(std::move(c));
}

void PtxMachine::wait(Group& group, Item& item, size_t pending) {
  for (; item.copies.size() > pending + 1; item.copies.pop_front())
    for (const Copy& c : item.copies.front()) {
      std::memcpy(c.to, c.bytes.data(), c.bytes.size());
      note_write(group, item, c.to, c.bytes.size());
    }
}

}  // namespace tinygrad::test
