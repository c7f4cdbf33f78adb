#include "search/worker_protocol.h"

#include <cstring>
#include <type_traits>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad::search {
namespace {

constexpr uint32_t magic = 0x54475731;  // changes with the format

class Writer {
 public:
  explicit Writer(FrameKind kind) { put(magic).put(kind).put(uint64_t{0}); }

  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  Writer& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& put(std::string_view text) {
    put(uint64_t(text.size()));
    bytes_.append(text);
    return *this;
  }
  template <class T>
  Writer& put(const std::vector<T>& values) {
    put(uint64_t(values.size()));
    for (const T& v : values) put(v);
    return *this;
  }
  Writer& put(const WorkerBuffer& b) { return put(b.bytes).put(b.content).put(b.written).put(b.result); }

  std::string frame() {
    const uint64_t size = bytes_.size() - frame_header_bytes;
    std::memcpy(bytes_.data() + frame_header_bytes - sizeof size, &size, sizeof size);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  void get(std::string& text) { text = take(number()); }
  void get(bool& value) { value = take(1)[0] != 0; }
  void get(WorkerBuffer& b) { get_all(b.bytes, b.content, b.written, b.result); }
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void get(T& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  template <class T>
  void get(std::vector<T>& values) {
    const uint64_t count = number();
    if (count > rest_.size()) throw FormatError(fmt::format("tg-worker: a list of {} in {} bytes", count, rest_.size()));
    values.resize(count);
    for (T& v : values) get(v);
  }
  template <class... T>
  void get_all(T&... values) {
    (get(values), ...);
  }
  void end() const {
    if (!rest_.empty()) throw FormatError(fmt::format("tg-worker: {} bytes too many", rest_.size()));
  }

 private:
  uint64_t number() {
    uint64_t n = 0;
    get(n);
    return n;
  }
  std::string_view take(uint64_t n) {
    if (n > rest_.size()) throw FormatError(fmt::format("tg-worker: {} bytes where {} are left", n, rest_.size()));
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace

std::string encode(const WorkerSetup& s) { return Writer(FrameKind::setup).put(s.threads).put(s.cold_bytes).put(s.buffers).frame(); }

std::string encode(const WorkerRequest& r) {
  Writer w(FrameKind::request);
  w.put(r.symbol).put(r.object).put(r.variables).put(r.chunks).put(r.scratch_bytes).put(r.repetitions);
  return w.put(r.enough_s).put(r.hopeless_s).put(r.limit_s).frame();
}

std::string encode(const WorkerReply& r) { return Writer(FrameKind::reply).put(r.error).put(r.seconds).frame(); }

FrameHeader decode_header(std::string_view bytes) {
  Reader in(bytes);
  uint32_t mark = 0;
  FrameHeader h;
  in.get_all(mark, h.kind, h.bytes);
  in.end();
  if (mark != magic) throw FormatError("tg-worker: it is of another version of the library, or no tg-worker");
  if (h.kind < FrameKind::setup || h.kind > FrameKind::reply) throw FormatError("tg-worker: a message of an unknown kind");
  if (h.bytes > most_frame_bytes) throw FormatError(fmt::format("tg-worker: a message of {} bytes", h.bytes));
  return h;
}

WorkerSetup decode_setup(std::string_view payload) {
  Reader in(payload);
  WorkerSetup s;
  in.get_all(s.threads, s.cold_bytes, s.buffers);
  in.end();
  return s;
}

WorkerRequest decode_request(std::string_view payload) {
  Reader in(payload);
  WorkerRequest r;
  in.get_all(r.symbol, r.object, r.variables, r.chunks, r.scratch_bytes, r.repetitions, r.enough_s, r.hopeless_s, r.limit_s);
  in.end();
  return r;
}

WorkerReply decode_reply(std::string_view payload) {
  Reader in(payload);
  WorkerReply r;
  in.get_all(r.error, r.seconds);
  in.end();
  return r;
}

}  // namespace tinygrad::search
