// Who has ended: watches of several "ranks" in one process, and strangers that connect to them.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "comm/watch.h"

namespace tinygrad::comm {
namespace {

using State = Watch::State;

class Watches : public testing::Test {
 protected:
  static constexpr int count = 3;

  void listen() {
    for (int r = 0; r < count; ++r) ports_.push_back(all_.emplace_back(std::make_unique<Watch>())->listen(count));
  }
  void connect(const std::vector<uint64_t>& keys = {7, 7, 7}) {
    const std::vector<std::string> hosts(count, "here");
    std::vector<std::thread> threads;
    for (int r = 0; r < count; ++r) threads.emplace_back([&, r] { all_[size_t(r)]->connect(r, hosts, ports_, keys[size_t(r)]); });
    for (std::thread& t : threads) t.join();
  }
  /// What one knows of another, once it is what is expected or after a while.
  State seen(int by, int of, State expected) {
    for (int i = 0; i < 400 && all_[size_t(by)]->state_of(of) != expected; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return all_[size_t(by)]->state_of(of);
  }

  std::vector<std::unique_ptr<Watch>> all_;
  std::vector<uint16_t> ports_;
};

}  // namespace

TEST_F(Watches, TellThoseThatAreGoneFromThoseThatSaidSo) {
  listen();
  connect();
  for (int r = 0; r < count; ++r) EXPECT_FALSE(all_[size_t(r)]->lost()) << r;
  all_[2].reset();  // as if it was killed
  EXPECT_EQ(seen(0, 2, State::lost), State::lost);
  EXPECT_EQ(all_[0]->lost(), std::optional(2));
  EXPECT_EQ(seen(0, 1, State::there), State::there);
  all_[0]->leave(2);  // the other one hears why, and does not take it for a second one that is lost
  all_[0].reset();
  EXPECT_EQ(seen(1, 0, State::left), State::left);
  EXPECT_EQ(all_[1]->given_up_by(0), std::optional(2));
  EXPECT_EQ(all_[1]->lost(), std::optional(2));
  EXPECT_FALSE(all_[1]->wait_for_all());
}

TEST_F(Watches, WaitForEachOtherAtTheEnd) {
  listen();
  connect();
  std::vector<std::thread> threads;
  std::vector<char> done(count);
  for (int r = 0; r < count; ++r)
    threads.emplace_back([&, r] {
      all_[size_t(r)]->leave();
      done[size_t(r)] = all_[size_t(r)]->wait_for_all();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(done, std::vector<char>(count, 1));
}

TEST_F(Watches, LetNobodyElseIn) {
  listen();
  std::vector<int> strangers;
  for (const std::string& said : {std::string(16, '\xff'), std::string("GET"), std::string(64, '\0')}) {
    const int socket = strangers.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(ports_[0]);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::send(socket, said.data(), said.size(), MSG_NOSIGNAL), ssize_t(said.size()));
    ::shutdown(socket, SHUT_WR);
  }
  connect();
  EXPECT_FALSE(all_[0]->lost());
  all_[1].reset();
  EXPECT_EQ(seen(0, 1, State::lost), State::lost);
  EXPECT_EQ(seen(0, 2, State::there), State::there);
  for (const int s : strangers) ::close(s);
}

TEST_F(Watches, NoticeNothingWhereTheyCannotConnect) {
  listen();
  ports_.assign(count, 0);
  connect();
  all_[2].reset();
  EXPECT_FALSE(all_[0]->lost());
  all_[0]->leave();
  EXPECT_TRUE(all_[0]->wait_for_all());
}

}  // namespace tinygrad::comm
