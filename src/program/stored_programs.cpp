#include "program/stored_programs.h"

#include <cstring>
#include <type_traits>

#include <tinygrad/errors.h>

namespace tinygrad {
namespace {

// Both directions are one description: fields() below names what there is, a Writer or a Reader is told of it.

class Writer {
 public:
  std::string bytes;

  template <class T>
  void number(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    number(value.size());
    bytes += value;
  }
  void symbol(Symbol value) { text(std::string(value.str())); }
  template <class T>
  void list(const std::vector<T>& values) {
    number(values.size());
    for (const T& v : values) fields(*this, v);
  }
  void index(const IndexExpr& e) {
    list(std::vector<IndexExpr::Step>(e.steps().begin(), e.steps().end()));
    if (e.is_constant()) number(e.evaluate({}));
  }
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool at_end() const { return left_.empty(); }

  template <class T>
  void number(T& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  void number(bool& value) { value = take(1)[0] != 0; }
  void text(std::string& value) { value = take(size()); }
  void symbol(Symbol& value) { value = Symbol(take(size())); }
  template <class T>
  void list(std::vector<T>& values) {
    const size_t count = size();  // an element takes a byte at least
    values.resize(count);
    for (T& v : values) fields(*this, v);
  }
  void index(IndexExpr& e) {
    std::vector<IndexExpr::Step> steps;
    list(steps);
    if (!steps.empty()) {
      e = IndexExpr(std::move(steps));
    } else {
      int64_t constant = 0;
      number(constant);
      e = constant;
    }
  }

 private:
  size_t size() {
    size_t n = 0;
    number(n);
    if (n > left_.size()) throw FormatError("stored programs: more elements than bytes");
    return n;
  }
  std::string_view take(size_t n) {
    if (n > left_.size()) throw FormatError("stored programs: they end too early");
    const std::string_view taken = left_.substr(0, n);
    left_.remove_prefix(n);
    return taken;
  }

  std::string_view left_;
};

/// `T` where the archive writes, `T&` where it reads.
template <class A, class T>
using Field = std::conditional_t<std::is_same_v<A, Writer>, const T&, T&>;

template <class A>
void fields(A& a, Field<A, IndexExpr::Step> s) {
  a.number(s.op), a.number(s.a), a.number(s.b), a.number(s.c), a.number(s.value);
}

template <class A>
void fields(A& a, Field<A, Symbol> s) {
  a.symbol(s);
}

template <class A>
void fields(A& a, Field<A, KernelParam> p) {
  a.number(p.slot), a.number(p.dtype), a.index(p.size), a.number(p.read), a.number(p.written), a.number(p.align), a.number(p.alias);
}

template <class A>
void fields(A& a, Field<A, StoredProgram> p) {
  auto& info = p.info;
  a.text(info.name), a.list(info.params), a.list(info.variables);
  for (int i = 0; i < 3; ++i) a.index(info.global[i]), a.index(info.local[i]);
  a.index(info.chunks), a.index(info.flops), a.index(info.bytes), a.number(info.scratch_bytes);
  a.text(p.binary);
}

/// Numbers that are looked up elsewhere are in range.
void check(const StoredProgram& p) {
  const auto need = [](bool fine) {
    if (!fine) throw FormatError("stored programs: a number is out of range");
  };
  int32_t last = -1;
  for (const KernelParam& k : p.info.params) {
    need(k.slot > last && static_cast<int>(k.dtype) < dtype_count);
    last = k.slot;
  }
  need(p.info.scratch_bytes >= 0);
  const auto check_index = [&](const IndexExpr& e) { need(e.is_valid(p.info.variables.size())); };
  for (const KernelParam& k : p.info.params) check_index(k.size);
  for (int i = 0; i < 3; ++i) check_index(p.info.global[i]), check_index(p.info.local[i]);
  for (const IndexExpr* e : {&p.info.chunks, &p.info.flops, &p.info.bytes}) check_index(*e);
}

}  // namespace

std::string pack_programs(std::span<const StoredProgram> programs) {
  Writer w;
  w.list(std::vector<StoredProgram>(programs.begin(), programs.end()));
  return std::move(w.bytes);
}

std::vector<StoredProgram> unpack_programs(std::string_view bytes) {
  Reader r(bytes);
  std::vector<StoredProgram> programs;
  r.list(programs);
  if (!r.at_end()) throw FormatError("stored programs: something follows them");
  for (const StoredProgram& p : programs) check(p);
  return programs;
}

}  // namespace tinygrad
