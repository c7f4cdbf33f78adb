#include "program/stored_programs.h"

#include "base/bytes.h"

namespace tinygrad {

// Both directions are one description.

static void fields(ByteWriter& out, Symbol s) { out.put_text(s.str()); }
static void fields(ByteReader& in, Symbol& s) { s = Symbol(in.take_text()); }

template <class A>
static void fields(A& archive, Field<A, IndexExpr::Step> s) {
  archive(s.op, s.a, s.b, s.c, s.value);
}

static void fields(ByteWriter& out, const IndexExpr& e) {
  out.put_each(e.steps(), [&](const IndexExpr::Step& s) { out(s); });
  if (e.is_constant()) out.put(e.evaluate({}));
}
static void fields(ByteReader& in, IndexExpr& e) {
  std::vector<IndexExpr::Step> steps;
  in(steps);
  e = steps.empty() ? IndexExpr(in.take<int64_t>()) : IndexExpr(std::move(steps));
}

template <class A>
static void fields(A& archive, Field<A, KernelParam> p) {
  archive(p.slot, p.dtype, p.size, p.read, p.written, p.align, p.alias, p.image_width);
}

template <class A>
static void fields(A& archive, Field<A, StoredProgram> p) {
  auto& info = p.info;
  archive(info.name, info.params, info.variables);
  for (int i = 0; i < 3; ++i) archive(info.global[i], info.local[i]);
  archive(info.chunks, info.flops, info.bytes, info.scratch_bytes, info.group_bytes, p.binary);
}

namespace {

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
  need(p.info.scratch_bytes >= 0 && p.info.group_bytes >= 0);
  const auto check_index = [&](const IndexExpr& e) { need(e.is_valid(p.info.variables.size())); };
  for (const KernelParam& k : p.info.params) {
    check_index(k.size);
    need(k.image_width == 0 || (k.image_width > 0 && k.size.is_constant() && k.size.evaluate({}) >= 4 * int64_t{k.image_width}));
  }
  for (int i = 0; i < 3; ++i) check_index(p.info.global[i]), check_index(p.info.local[i]);
  for (const IndexExpr* e : {&p.info.chunks, &p.info.flops, &p.info.bytes}) check_index(*e);
}

}  // namespace

std::string pack_programs(std::span<const StoredProgram> programs) {
  ByteWriter out;
  out.put_each(programs, [&](const StoredProgram& p) { out(p); });
  return std::move(out).take();
}

std::vector<StoredProgram> unpack_programs(std::string_view bytes) {
  ByteReader in(bytes, "stored programs");
  std::vector<StoredProgram> programs;
  in(programs);
  in.expect_end();
  for (const StoredProgram& p : programs) check(p);
  return programs;
}

}  // namespace tinygrad
