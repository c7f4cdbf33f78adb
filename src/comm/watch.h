#pragma once
/// Who notices at once that a rank has ended.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tinygrad::comm {

/// Connections to the other ranks' watches, over which nothing goes but that a rank ends. One that ends without saying so, because it was
/// killed for instance, closes them. Where ranks cannot connect, nothing is noticed.
class Watch {
 public:
  Watch() = default;
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Where the others find this one: a port, 0 if there is none.
  uint16_t listen(int ranks);
  /// Connects to all of them, which do the same now. `key` is what those know who belong together.
  void connect(int rank, std::span<const std::string> hosts, std::span<const uint16_t> ports, uint64_t key);

  enum class State : uint8_t {
    there,
    left,  ///< it ended, and said so
    lost,
  };
  State state_of(int rank);
  /// One that was lost, if any.
  std::optional<int> lost();
  /// For whose sake one has left, if it left because it gave another one up.
  std::optional<int> given_up_by(int rank) const;
  /// Says to all that this one ends, and if it does because it gave another one up, which that is.
  void leave(std::optional<int> given_up = {});
  /// Waits until all others have said that they end. False once one has ended in another way, or because it gave one up.
  bool wait_for_all();

 private:
  struct Peer {
    int socket = -1;
    State state = State::there;
    std::optional<int> given_up = {};
  };
  void look();

  int listener_ = -1;
  std::vector<Peer> peers_;
};

}  // namespace tinygrad::comm
