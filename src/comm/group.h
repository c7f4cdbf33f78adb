#pragma once
/// The ranks of a program, and how they send each other bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::comm {

/// Bytes to a rank, or from it.
struct Message {
  int peer = 0;
  bool is_sent = false;
  std::span<std::byte> bytes;
};

class Group {
 public:
  virtual ~Group();
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The machine that a rank runs on.
  virtual std::string host(int rank) const = 0;

  /// Sends and receives all messages. Those between two ranks arrive in the order in which both name them, in this exchange and from one to
  /// the next. `kind`, from 0 to 32767, is the same on both sides. Throws CommError where a peer does not take part within `timeout_s`
  /// seconds, or takes part in an exchange of another kind; `phase` says in it what is done. One thread at a time.
  virtual void exchange(std::span<const Message> messages, int kind, std::string_view phase, double timeout_s) = 0;
};

/// A process that was started alone.
std::unique_ptr<Group> alone();
/// The ranks that OpenMPI has started, with its library opened at run time. Throws CommError.
std::unique_ptr<Group> open_mpi();

/// That of this process: the environment says how it was started. Throws CommError where that is a way that is not known. In a child that
/// was forked by a rank, exchanges throw it.
Group& group();

/// Kinds of messages that are not those of a list.
enum Kind : int { about_programs = 0, first_of_lists = 1, about_files = 32767 };

/// What every rank says, by rank, in as many elements as `counts` has for it. All say it together.
template <class T>
std::vector<std::vector<T>> said_by_all(std::span<T> mine, std::span<const size_t> counts, Kind kind, std::string_view phase,
                                        double timeout_s) {
  Group& ranks = group();
  std::vector<std::vector<T>> all(size_t(ranks.size()));
  std::vector<Message> messages;
  for (int r = 0; r < ranks.size(); ++r) {
    all[size_t(r)].resize(counts[size_t(r)]);
    if (r == ranks.rank()) {
      all[size_t(r)].assign(mine.begin(), mine.end());
      continue;
    }
    messages.push_back({r, true, std::as_writable_bytes(mine)});
    messages.push_back({r, false, std::as_writable_bytes(std::span(all[size_t(r)]))});
  }
  ranks.exchange(messages, kind, phase, timeout_s);
  return all;
}

/// A number that is the same on all ranks, and another one in each run: what random numbers begin with. The environment says it, so that
/// ranks that have nothing else in common need not meet.
uint64_t seed();

}  // namespace tinygrad::comm
