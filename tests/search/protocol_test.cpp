#include "search/worker_protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tinygrad/errors.h>

#include "base/memory_file.h"
#include "search/worker_serve.h"

namespace tinygrad::search {
namespace {

const WorkerSetup setup{
    .threads = 3, .cold_bytes = 4096, .buffers = {{.bytes = 64}, {.bytes = 8, .content = 4096, .written = true, .result = 8192}}};
const WorkerRequest request{.symbol = "kernel_k",
                            .object = std::string("\x7f\0ELF", 5),
                            .variables = {-1, 7},
                            .chunks = 5,
                            .scratch_bytes = 11,
                            .repetitions = 9,
                            .enough_s = 0.25,
                            .hopeless_s = 0.5,
                            .limit_s = 2};
const WorkerReply reply{.error = "why", .seconds = {0.5, 0.25}};

std::string payload_of(const std::string& frame, FrameKind kind) {
  const FrameHeader h = decode_header(std::string_view(frame).substr(0, frame_header_bytes));
  EXPECT_EQ(h.kind, kind);
  EXPECT_EQ(h.bytes, frame.size() - frame_header_bytes);
  return frame.substr(frame_header_bytes);
}

TEST(WorkerProtocol, WhatIsSentArrives) {
  EXPECT_EQ(decode_setup(payload_of(encode(setup), FrameKind::setup)), setup);
  EXPECT_EQ(decode_request(payload_of(encode(request), FrameKind::request)), request);
  EXPECT_EQ(decode_reply(payload_of(encode(reply), FrameKind::reply)), reply);
  EXPECT_EQ(decode_reply(payload_of(encode(WorkerReply{}), FrameKind::reply)), WorkerReply{});
}

TEST(WorkerProtocol, EveryShorterAndLongerMessageIsRefused) {
  const std::string s = payload_of(encode(setup), FrameKind::setup), q = payload_of(encode(request), FrameKind::request),
                    r = payload_of(encode(reply), FrameKind::reply);
  for (size_t n = 0; n < s.size(); ++n) EXPECT_THROW(decode_setup(s.substr(0, n)), FormatError) << n;
  for (size_t n = 0; n < q.size(); ++n) EXPECT_THROW(decode_request(q.substr(0, n)), FormatError) << n;
  for (size_t n = 0; n < r.size(); ++n) EXPECT_THROW(decode_reply(r.substr(0, n)), FormatError) << n;
  EXPECT_THROW(decode_setup(s + "x"), FormatError);
  EXPECT_THROW(decode_request(q + "x"), FormatError);
  EXPECT_THROW(decode_reply(r + "x"), FormatError);
}

TEST(WorkerProtocol, CountsAreCheckedBeforeMemoryIsTaken) {
  std::string r = payload_of(encode(reply), FrameKind::reply);
  for (size_t i = 0; i < 4; ++i) r[i] = '\xff';  // the length of the text
  EXPECT_THROW(decode_reply(r), FormatError);
  std::string q = payload_of(encode(WorkerRequest{}), FrameKind::request);
  for (size_t i = 8; i < 12; ++i) q[i] = '\x7f';  // the number of variables
  EXPECT_THROW(decode_request(q), FormatError);
}

TEST(WorkerProtocol, HeadersOfOthersAreRefused) {
  std::string head = encode(reply).substr(0, frame_header_bytes);
  EXPECT_NO_THROW(decode_header(head));
  EXPECT_THROW(decode_header(head.substr(1)), FormatError);
  for (size_t i : {8, 19}) {  // the kind, the length
    std::string other = head;
    other[i] = '\x66';
    EXPECT_THROW(decode_header(other), FormatError) << i;
  }
}

std::string complaint_of(const std::string& head) {
  try {
    decode_header(head);
  } catch (const FormatError& e) {
    return e.what();
  }
  return {};
}

TEST(WorkerProtocol, OtherBuildsAreToldSo) {
  std::string head = encode(reply).substr(0, frame_header_bytes);
  EXPECT_EQ(complaint_of(head), "");
  ++head[0];
  EXPECT_EQ(complaint_of(head),
            "tg-worker: the other side speaks another protocol than this library: use the tg-worker that is installed with it");
}

// A worker that a search of another build has started says who it is.
TEST(WorkerProtocol, AWorkerAnswersStrangers) {
  const MemoryFile memory(4096);
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  std::string question = encode(setup);
  ++question[0];
  ASSERT_EQ(::write(sockets[0], question.data(), question.size()), ssize_t(question.size()));
  EXPECT_EQ(serve_worker(sockets[1], ::dup(memory.descriptor())), 1);
  std::string head(frame_header_bytes, '\0');
  ASSERT_EQ(::read(sockets[0], head.data(), head.size()), ssize_t(head.size()));
  const FrameHeader header = decode_header(head);
  EXPECT_EQ(header.kind, FrameKind::reply);
  std::string payload(header.bytes, '\0');
  ASSERT_EQ(::read(sockets[0], payload.data(), payload.size()), ssize_t(payload.size()));
  EXPECT_EQ(decode_reply(payload).error, complaint_of(question.substr(0, frame_header_bytes)));
  for (const int s : sockets) ::close(s);
}

}  // namespace
}  // namespace tinygrad::search
