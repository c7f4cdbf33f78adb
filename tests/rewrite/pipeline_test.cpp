#include "rewrite/pipeline.h"

#include <gtest/gtest.h>

#include <tinygrad/context.h>

#include <string>
#include <vector>

#include "base/profile.h"
#include "rewrite/rewrite.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::rewrite {
namespace {

TEST(Pipeline, StepsAreTimedSeenAndChecked) {
  struct Recorder : RewriteObserver {
    void stage(const char* pipeline, const char* step, const UOp& before, const UOp& after) override {
      seen.push_back(std::string(pipeline) + ": " + step + (before == after ? ", same" : ""));
    }
    std::vector<std::string> seen;
  } recorder;
  const Context profiled{{.profile = true}};
  const int64_t start = profile_now_ns();
  RewriteObserver* previous = set_rewrite_observer(&recorder);
  EXPECT_EQ(rewrite_observer(), &recorder);
  std::vector<std::string> checked;
  Pipeline p("test", index_const(1), [&](const char* step, const UOp& graph) { checked.push_back(step + print_expr(graph)); });
  p.step("first", p.graph() + 1);
  p.step("second", p.graph());
  set_rewrite_observer(previous);
  EXPECT_EQ(recorder.seen, (std::vector<std::string>{"test: first", "test: second, same"}));
  EXPECT_EQ(checked, (std::vector<std::string>{"first(1+1)", "second(1+1)"}));
  std::vector<std::string> timed;
  for (const ProfileEvent& e : profile_events())
    if (e.start_ns >= start && e.category == Symbol("test")) timed.emplace_back(e.name.str());
  EXPECT_EQ(timed, (std::vector<std::string>{"first", "second"}));
}

}  // namespace
}  // namespace tinygrad::rewrite
