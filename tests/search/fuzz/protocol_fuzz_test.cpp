#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "search/worker_protocol.h"
#include "support/test_scale.h"

namespace tinygrad::search {
namespace {

template <class Decode>
void accept_or_refuse(Decode&& decode, const std::string& bytes) {
  try {
    decode(bytes);
  } catch (const FormatError&) {}
}

// Any bytes are a message or a FormatError; sanitizers see the rest.
TEST(WorkerProtocolFuzz, DamagedMessages) {
  const std::string frames[] = {encode(WorkerSetup{.threads = 2, .cold_bytes = 8, .buffers = std::vector<WorkerBuffer>(3)}),
                                encode(WorkerRequest{.symbol = "kernel_k", .object = std::string(40, 'x'), .variables = {1, 2}}),
                                encode(WorkerReply{.error = "no", .seconds = {1, 2, 3}})};
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = frames[random() % 3].substr(frame_header_bytes);
    for (size_t n = random() % 8; n > 0; --n) bytes[random() % bytes.size()] = char(random());
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 16));
    accept_or_refuse([](const std::string& b) { decode_setup(b); }, bytes);
    accept_or_refuse([](const std::string& b) { decode_request(b); }, bytes);
    accept_or_refuse([](const std::string& b) { decode_reply(b); }, bytes);
    accept_or_refuse([](const std::string& b) { decode_header(b); }, bytes.substr(0, frame_header_bytes));
  }
}

}  // namespace
}  // namespace tinygrad::search
