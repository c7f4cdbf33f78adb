#include "frontend/torch/unpickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "frontend/torch/globals.h"
#include "frontend/torch/pickle_text.h"

namespace tinygrad::frontend::torch {

namespace {

class Machine;

struct Instruction {
  uint8_t code;
  std::string_view name;
  void (*run)(Machine&);
};

/// The stack machine that pickles are programs of.
class Machine {
 public:
  Machine(ByteCursor& in, std::string_view file, Heap& heap) : in_(in), file_(file), heap_(heap) { heap.allow_copies(in.left()); }

  Value run();

  // What instructions are made of.
  [[noreturn]] void fail(std::string_view why) const { place_.fail(why); }
  Heap& heap() { return heap_; }
  const Place& place() const { return place_; }

  void push(const Value& value) { stack_.push_back(value); }
  Value pop() {
    Value out = top();
    stack_.pop_back();
    return out;
  }
  /// Of what was pushed since the last mark.
  Value& top() {
    if (stack_.size() <= floor()) fail("nothing is on the stack");
    return stack_.back();
  }
  /// The last `count` values, in the order in which they were pushed.
  std::vector<Value> pop_many(size_t count) {
    if (stack_.size() - floor() < count) fail(fmt::format("{} values are on the stack, expects {}", stack_.size() - floor(), count));
    std::vector<Value> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }
  void mark() { marks_.push_back(stack_.size()); }
  std::vector<Value> pop_mark() {
    if (marks_.empty()) fail("no mark is on the stack");
    std::vector<Value> out = pop_many(stack_.size() - floor());
    marks_.pop_back();
    return out;
  }

  template <class T>
  T number() {
    return in_.number<T>(place_.field);
  }
  std::string_view text(uint64_t size) { return in_.text(size, place_.field); }
  std::string_view line() { return in_.line(place_.field); }

  void push_text(std::string_view bytes) {
    if (!is_utf8(bytes)) fail("a text that is not UTF-8");
    push(heap_.text(bytes));
  }
  void push_bytes(std::string_view bytes) { push(static_cast<const Bytes*>(heap_.make(Bytes{std::string(bytes)}))); }
  void push_tuple(std::vector<Value> items) { push(static_cast<const Tuple*>(heap_.make(Tuple{std::move(items)}))); }
  void push_integer(const std::optional<Integer>& value) {
    if (!value) fail("no integer");
    if (const int64_t* small = std::get_if<int64_t>(&*value))
      push(*small);
    else
      push(static_cast<const LongInteger*>(heap_.make(LongInteger{std::get<std::string>(*value)})));
  }

  void put(uint64_t id) { memo_[id] = top(); }
  void memoize() { put(memo_.size()); }
  void get(uint64_t id) {
    const auto found = memo_.find(id);
    if (found == memo_.end()) fail(fmt::format("nothing was put at {}", id));
    push(found->second);
  }
  uint64_t line_id() {
    uint64_t id = 0;
    const std::string_view digits = line();
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (error != std::errc{} || end != digits.data() + digits.size()) fail("no number of the memo");
    return id;
  }

  void append(std::span<const Value> items) {
    List* const* list = std::get_if<List*>(&top());
    if (!list) fail(fmt::format("only lists are appended to, and this is {}", kind_of(top())));
    (*list)->items.insert((*list)->items.end(), items.begin(), items.end());
  }
  void set_items(std::span<const Value> items) {
    Dict* const* dict = std::get_if<Dict*>(&top());
    if (!dict) fail(fmt::format("only dicts are given items, and this is {}", kind_of(top())));
    fill(**dict, items);
  }
  void fill(Dict& dict, std::span<const Value> items) {
    if (items.size() % 2 != 0) fail(fmt::format("{} keys and values", items.size()));
    for (size_t i = 0; i < items.size(); i += 2) {
      if (is_mutable(items[i])) fail(fmt::format("a key is {}", kind_of(items[i])));
      dict.set(items[i], items[i + 1]);
    }
  }
  void add_items(std::span<const Value> items) {
    Set* const* set = std::get_if<Set*>(&top());
    if (!set) fail(fmt::format("only sets are added to, and this is {}", kind_of(top())));
    (*set)->items.insert((*set)->items.end(), items.begin(), items.end());
  }

  void push_global(std::string_view module, std::string_view name) {
    const Global* global = find_global(module, name);
    constexpr size_t most = 200;
    if (!global)
      fail(fmt::format(
          "{}.{} is not one of the names that checkpoints of tensors have, and is not loaded; of a whole model, save the state_dict()",
          module.substr(0, most), name.substr(0, most)));
    push(global);
  }
  const Global& pop_global() {
    const Value value = pop();
    const Global* const* global = std::get_if<const Global*>(&value);
    if (!global) fail(fmt::format("{} is called", kind_of(value)));
    return **global;
  }
  const Tuple& pop_tuple() {
    const Value value = pop();
    const Tuple* const* tuple = std::get_if<const Tuple*>(&value);
    if (!tuple) fail(fmt::format("the arguments are {}, expects a tuple", kind_of(value)));
    return **tuple;
  }
  void reduce() {
    const Tuple& args = pop_tuple();
    const Global& callee = pop_global();
    push(call_global(callee, args, heap_, place_));
  }
  void new_of_class() {
    const Tuple& args = pop_tuple();
    const Global& of = pop_global();
    push(new_object(of, args, heap_, place_));
  }
  void build() {
    const Value state = pop();
    set_state(top(), state, heap_, place_);
  }
  void persistent() {
    const Value id = pop();
    push(storage_of(id, heap_, place_));
  }
  void protocol() {
    constexpr uint8_t newest = 5;
    const uint8_t version = number<uint8_t>();
    if (version > newest) fail(fmt::format("protocol {} is not known, only those up to {}", version, newest));
  }

 private:
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  ByteCursor& in_;
  const std::string_view file_;
  Heap& heap_;
  Place place_ = {};  ///< of the instruction that runs
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value> memo_;
};

template <class T>
void push_counted_text(Machine& m) {
  m.push_text(m.text(m.number<T>()));
}
template <class T>
void push_counted_bytes(Machine& m) {
  m.push_bytes(m.text(m.number<T>()));
}
/// Of sizes that are signed and must not be negative.
uint64_t size_of(Machine& m) {
  const int32_t size = m.number<int32_t>();
  if (size < 0) m.fail(fmt::format("{} bytes", size));
  return static_cast<uint64_t>(size);
}
double big_endian_double(Machine& m) { return std::bit_cast<double>(__builtin_bswap64(m.number<uint64_t>())); }
void push_float_line(Machine& m) {
  const std::optional<double> value = parse_float(m.line());
  if (!value) m.fail("no number");
  m.push(*value);
}
void push_int_line(Machine& m) {
  const std::string_view digits = m.line();
  if (digits == "00" || digits == "01")
    m.push(digits == "01");
  else
    m.push_integer(parse_integer(digits));
}
void push_long_line(Machine& m) {
  std::string_view digits = m.line();
  if (digits.ends_with('L')) digits.remove_suffix(1);
  m.push_integer(parse_integer(digits));
}
void push_string_line(Machine& m) {
  const std::optional<std::string> text = unquoted(m.line());
  if (!text) m.fail("no text in quotes");
  m.push_text(*text);
}
void push_unicode_line(Machine& m) {
  const std::optional<std::string> text = raw_unicode_unescaped(m.line());
  if (!text) m.fail("a text with an escape that is none");
  m.push_text(*text);
}

constexpr uint8_t stop = '.';

// pickletools.opcodes, but for what makes objects of other classes (INST, OBJ, NEWOBJ_EX, EXT1, ...), names persistent objects by texts, or
// takes buffers from elsewhere.
constexpr auto instructions = std::to_array<Instruction>({
    {'N', "NONE", [](Machine& m) { m.push({}); }},
    {0x88, "NEWTRUE", [](Machine& m) { m.push(true); }},
    {0x89, "NEWFALSE", [](Machine& m) { m.push(false); }},
    {'I', "INT", push_int_line},
    {'J', "BININT", [](Machine& m) { m.push(int64_t{m.number<int32_t>()}); }},
    {'K', "BININT1", [](Machine& m) { m.push(int64_t{m.number<uint8_t>()}); }},
    {'M', "BININT2", [](Machine& m) { m.push(int64_t{m.number<uint16_t>()}); }},
    {'L', "LONG", push_long_line},
    {0x8a, "LONG1", [](Machine& m) { m.push_integer(integer_of_bytes(m.text(m.number<uint8_t>()))); }},
    {0x8b, "LONG4", [](Machine& m) { m.push_integer(integer_of_bytes(m.text(size_of(m)))); }},
    {'F', "FLOAT", push_float_line},
    {'G', "BINFLOAT", [](Machine& m) { m.push(big_endian_double(m)); }},
    {'S', "STRING", push_string_line},
    {'T', "BINSTRING", [](Machine& m) { m.push_text(m.text(size_of(m))); }},
    {'U', "SHORT_BINSTRING", push_counted_text<uint8_t>},
    {'V', "UNICODE", push_unicode_line},
    {'X', "BINUNICODE", push_counted_text<uint32_t>},
    {0x8c, "SHORT_BINUNICODE", push_counted_text<uint8_t>},
    {0x8d, "BINUNICODE8", push_counted_text<uint64_t>},
    {'B', "BINBYTES", push_counted_bytes<uint32_t>},
    {'C', "SHORT_BINBYTES", push_counted_bytes<uint8_t>},
    {0x8e, "BINBYTES8", push_counted_bytes<uint64_t>},
    {0x96, "BYTEARRAY8", push_counted_bytes<uint64_t>},
    {']', "EMPTY_LIST", [](Machine& m) { m.push(m.heap().make(List{})); }},
    {'l', "LIST", [](Machine& m) { m.push(m.heap().make(List{m.pop_mark()})); }},
    {'a', "APPEND",
     [](Machine& m) {
       const Value item = m.pop();
       m.append({&item, 1});
     }},
    {'e', "APPENDS", [](Machine& m) { m.append(m.pop_mark()); }},
    {')', "EMPTY_TUPLE", [](Machine& m) { m.push_tuple({}); }},
    {'t', "TUPLE", [](Machine& m) { m.push_tuple(m.pop_mark()); }},
    {0x85, "TUPLE1", [](Machine& m) { m.push_tuple(m.pop_many(1)); }},
    {0x86, "TUPLE2", [](Machine& m) { m.push_tuple(m.pop_many(2)); }},
    {0x87, "TUPLE3", [](Machine& m) { m.push_tuple(m.pop_many(3)); }},
    {'}', "EMPTY_DICT", [](Machine& m) { m.push(m.heap().make(Dict{})); }},
    {'d', "DICT",
     [](Machine& m) {
       Dict* dict = m.heap().make(Dict{});
       m.fill(*dict, m.pop_mark());
       m.push(dict);
     }},
    {'s', "SETITEM", [](Machine& m) { m.set_items(m.pop_many(2)); }},
    {'u', "SETITEMS", [](Machine& m) { m.set_items(m.pop_mark()); }},
    {0x8f, "EMPTY_SET", [](Machine& m) { m.push(m.heap().make(Set{})); }},
    {0x90, "ADDITEMS", [](Machine& m) { m.add_items(m.pop_mark()); }},
    {0x91, "FROZENSET", [](Machine& m) { m.push(m.heap().make(Set{m.pop_mark()})); }},
    {'(', "MARK", [](Machine& m) { m.mark(); }},
    {'0', "POP", [](Machine& m) { m.pop(); }},
    {'1', "POP_MARK", [](Machine& m) { m.pop_mark(); }},
    {'2', "DUP", [](Machine& m) { m.push(Value(m.top())); }},
    {'g', "GET", [](Machine& m) { m.get(m.line_id()); }},
    {'h', "BINGET", [](Machine& m) { m.get(m.number<uint8_t>()); }},
    {'j', "LONG_BINGET", [](Machine& m) { m.get(m.number<uint32_t>()); }},
    {'p', "PUT", [](Machine& m) { m.put(m.line_id()); }},
    {'q', "BINPUT", [](Machine& m) { m.put(m.number<uint8_t>()); }},
    {'r', "LONG_BINPUT", [](Machine& m) { m.put(m.number<uint32_t>()); }},
    {0x94, "MEMOIZE", [](Machine& m) { m.memoize(); }},
    {'c', "GLOBAL",
     [](Machine& m) {
       const std::string_view module = m.line();
       m.push_global(module, m.line());
     }},
    {0x93, "STACK_GLOBAL",
     [](Machine& m) {
       const std::vector<Value> names = m.pop_many(2);
       const Text* const* module = std::get_if<const Text*>(&names[0]);
       const Text* const* name = std::get_if<const Text*>(&names[1]);
       if (!module || !name) m.fail("a name that is no text");
       m.push_global((*module)->text, (*name)->text);
     }},
    {'R', "REDUCE", [](Machine& m) { m.reduce(); }},
    {0x81, "NEWOBJ", [](Machine& m) { m.new_of_class(); }},
    {'b', "BUILD", [](Machine& m) { m.build(); }},
    {'Q', "BINPERSID", [](Machine& m) { m.persistent(); }},
    {0x80, "PROTO", [](Machine& m) { m.protocol(); }},
    {0x95, "FRAME", [](Machine& m) { m.number<uint64_t>(); }},  // only tells readers how much to read at once
    {stop, "STOP", [](Machine&) {}},
});

const Instruction* instruction_of(uint8_t code) {
  static constexpr int8_t none = -1;
  static constexpr auto places = [] {
    std::array<int8_t, 256> out{};
    out.fill(none);
    for (size_t i = 0; i < instructions.size(); ++i) out[instructions[i].code] = static_cast<int8_t>(i);
    return out;
  }();
  return places[code] == none ? nullptr : &instructions[static_cast<size_t>(places[code])];
}

Value Machine::run() {
  for (;;) {
    place_ = {file_, "an instruction", in_.at()};
    const uint8_t code = in_.number<uint8_t>(place_.field);
    const Instruction* instruction = instruction_of(code);
    if (!instruction) fail(fmt::format("{:#04x} is not one of those that checkpoints have", code));
    place_.field = instruction->name;
    if (code == stop) return pop();
    instruction->run(*this);
  }
}

}  // namespace

Value unpickle(ByteCursor& in, std::string_view file, Heap& heap) { return Machine(in, file, heap).run(); }

}  // namespace tinygrad::frontend::torch
