#include "search/worker_protocol.h"

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "runtime/cpu/cpu_code.h"

namespace tinygrad::search {

// Both directions are one description.

template <class A>
static void fields(A& archive, Field<A, FrameHeader> h) {
  archive(h.peer, h.kind, h.bytes);
}

template <class A>
static void fields(A& archive, Field<A, WorkerBuffer> b) {
  archive(b.bytes, b.content, b.written, b.result);
}

template <class A>
static void fields(A& archive, Field<A, WorkerSetup> s) {
  archive(s.threads, s.cold_bytes, s.buffers);
}

template <class A>
static void fields(A& archive, Field<A, WorkerRequest> r) {
  archive(r.symbol, r.object, r.variables, r.chunks, r.scratch_bytes, r.repetitions, r.enough_s, r.hopeless_s, r.limit_s);
}

template <class A>
static void fields(A& archive, Field<A, WorkerReply> r) {
  archive(r.error, r.seconds);
}

namespace {

constexpr uint64_t format = 2;  // of the messages

template <class T>
std::string frame(FrameKind kind, const T& message) {
  ByteWriter payload, out;
  payload(message);
  out(FrameHeader{.peer = protocol_id(), .kind = kind, .bytes = payload.bytes().size()});
  out.put_bytes(payload.bytes());
  return std::move(out).take();
}

template <class T>
T decode(std::string_view bytes) {
  ByteReader in(bytes, "tg-worker: a damaged message");
  T message;
  in(message);
  in.expect_end();
  return message;
}

}  // namespace

uint64_t protocol_id() {
  static const uint64_t id = hash_all(format, runtime::kernel_abi());
  return id;
}

std::string encode(const WorkerSetup& setup) { return frame(FrameKind::setup, setup); }
std::string encode(const WorkerRequest& request) { return frame(FrameKind::request, request); }
std::string encode(const WorkerReply& reply) { return frame(FrameKind::reply, reply); }

FrameHeader decode_header(std::string_view bytes) {
  const auto h = decode<FrameHeader>(bytes);
  if (h.peer != protocol_id())
    throw FormatError("tg-worker: the other side speaks another protocol than this library: use the tg-worker that is installed with it");
  if (h.kind < FrameKind::setup || h.kind > FrameKind::reply) throw FormatError("tg-worker: a message of an unknown kind");
  if (h.bytes > (h.kind == FrameKind::reply ? most_reply_bytes : most_frame_bytes))
    throw FormatError(fmt::format("tg-worker: a message of {} bytes", h.bytes));
  return h;
}

WorkerSetup decode_setup(std::string_view payload) { return decode<WorkerSetup>(payload); }
WorkerRequest decode_request(std::string_view payload) { return decode<WorkerRequest>(payload); }
WorkerReply decode_reply(std::string_view payload) { return decode<WorkerReply>(payload); }

}  // namespace tinygrad::search
