#include "base/options.h"

#include <gtest/gtest.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "support/message_of.h"

namespace tinygrad {
namespace {

using test::message_of;

/// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Options, ReadsEveryTypeFromTheEnvironment) {
  Variable a("DEBUG", "3"), b("NOOPT", "true"), c("DEV", "CPU:LLVM"), d("BEAM_BUDGET_S", "2.5"), e("MAX_BUFFER_SIZE", "5000000000"),
      f("NO_COLOR", "please"), g("TC_SELECT", "-1"), h("BEAM", "");
  Options o = Options::from_environment();
  EXPECT_EQ(o.debug, 3);
  EXPECT_TRUE(o.noopt);
  EXPECT_EQ(o.dev, "CPU:LLVM");
  EXPECT_EQ(o.beam_budget_s, 2.5);
  EXPECT_EQ(o.max_buffer_size, 5000000000);
  EXPECT_TRUE(o.no_color);
  EXPECT_EQ(o.tc_select, -1);
  EXPECT_EQ(o.beam, 0);
}

TEST(Options, ABadValueNamesTheVariableTheValueAndWhatIsExpected) {
  auto message = [](const char* name, const char* value) {
    Variable v(name, value);
    return message_of<ValueError>([] { Options::from_environment(); });
  };
  EXPECT_EQ(message("DEBUG", "lots"), "DEBUG: got 'lots', expected an integer from 0 to 9");
  EXPECT_EQ(message("DEBUG", "10"), "DEBUG: got '10', expected an integer from 0 to 9");
  EXPECT_EQ(message("DEBUG", "1x"), "DEBUG: got '1x', expected an integer from 0 to 9");
  EXPECT_EQ(message("BEAM", "99999999999999999999"), "BEAM: got '99999999999999999999', expected an integer from 0 to 65536");
  EXPECT_EQ(message("NOOPT", "2"), "NOOPT: got '2', expected 0 or 1");
  EXPECT_EQ(message("BEAM_BUDGET_S", "nan"), "BEAM_BUDGET_S: got 'nan', expected a number from 0 to 1000000000");
  EXPECT_EQ(message("DEFAULT_FLOAT", "float"), "DEFAULT_FLOAT: got 'float', expected one of float16, bfloat16, float32, float64");
}

/// What tinygrad has and we do not: a variable of that name is as any other that nobody reads.
TEST(Options, VariablesOfWhatIsNotBuiltAreNotRead) {
  const Options before = Options::from_environment();
  Variable ring("RING", "lots"), viz("VIZ", "7");
  EXPECT_EQ(Options::from_environment(), before);
  for (const OptionInfo& o : option_table()) EXPECT_TRUE(o.variable != "RING" && o.variable != "VIZ") << o.variable;
}

TEST(Options, TheCodeKeyCoversWhatChangesCodeAndNothingElse) {
  Options base, quiet, code;
  quiet.debug = 4;
  quiet.training = true;
  code.noopt = true;
  EXPECT_EQ(base.code_key(), quiet.code_key());
  EXPECT_NE(base.code_key(), code.code_key());
  EXPECT_NE(base, quiet);
  Options text;
  text.emulated_dtypes = "float16";
  EXPECT_NE(base.code_key(), text.code_key());
}

TEST(Options, TheListIsSortedCompleteAndDocumented) {
  std::span<const OptionInfo> table = option_table();
  EXPECT_TRUE(std::ranges::is_sorted(table, {}, &OptionInfo::field));
  std::set<std::string> names;
  for (const OptionInfo& o : table) {
    std::string upper(o.field);
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(upper, o.variable);
    EXPECT_GT(o.documentation.size(), 20u) << o.variable;
    names.insert(upper);
  }
  for (const char* name : {"DEV",
                           "DEBUG",
                           "BEAM",
                           "NOOPT",
                           "JIT",
                           "PROFILE",
                           "SPEC",
                           "CHECK_OOB",
                           "VALIDATE_WITH_CPU",
                           "TRAINING",
                           "WINO",
                           "TC",
                           "TC_SELECT",
                           "TC_OPT",
                           "ALLOW_TF32",
                           "BEAM_BUDGET_S",
                           "TRANSCENDENTAL",
                           "NOLOCALS",
                           "SPLIT_REDUCEOP",
                           "LRU",
                           "CACHELEVEL",
                           "JIT_BATCH_SIZE",
                           "NO_MEMORY_PLANNER",
                           "CCACHE",
                           "FUSE_OPTIM",
                           "DEFAULT_FLOAT",
                           "DEFAULT_INT",
                           "IGNORE_BEAM_CACHE",
                           "PARALLEL",
                           "SCACHE",
                           "IMAGE",
                           "NO_COLOR",
                           "MAX_BUFFER_SIZE",
                           "CACHEDB",
                           "NUM_CPU_THREADS",
                           "EMULATED_DTYPES",
                           "CAPTURE_PROCESS_REPLAY"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Options, DocsAreTheGeneratedText) {
  auto path = std::filesystem::path(TINYGRAD_DATA_DIR).parent_path() / "docs" / "environment.md";
  if (std::getenv("TG_UPDATE_DOCS")) std::ofstream(path) << environment_markdown();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), environment_markdown()) << "write it anew with TG_UPDATE_DOCS=1";
}

TEST(Context, ScopesNestAndRestore) {
  Options before = current_options();
  {
    Context outer{{.debug = 2, .training = true}};
    EXPECT_EQ(current_options().debug, 2);
    EXPECT_TRUE(current_options().training);
    {
      Context inner{{.dev = "NULL", .training = false}};
      EXPECT_EQ(current_options().debug, 2);
      EXPECT_EQ(current_options().dev, "NULL");
      EXPECT_FALSE(current_options().training);
    }
    EXPECT_TRUE(current_options().training);
    EXPECT_EQ(current_options().dev, before.dev);
  }
  EXPECT_EQ(current_options(), before);
}

TEST(Context, ABadValueChangesNothing) {
  Options before = current_options();
  EXPECT_EQ(message_of<ValueError>([] { Context bad{{.beam = 5, .jit = 7}}; }), "Context: JIT: got '7', expected an integer from 0 to 2");
  EXPECT_EQ(current_options(), before);
}

TEST(Context, ThrowingOutOfAScopeRestores) {
  Options before = current_options();
  try {
    Context guard{{.debug = 5}};
    throw ValueError("out");
  } catch (const ValueError&) {}
  EXPECT_EQ(current_options(), before);
}

TEST(Context, OtherThreadsAreNotChangedUnlessTheyAreHandedTheOptions) {
  Context guard{{.beam = 7}};
  std::thread([] { EXPECT_NE(current_options().beam, 7); }).join();
  std::thread([options = Context::current()] {
    Context same(options);
    EXPECT_EQ(current_options().beam, 7);
    Context more{{.beam = 8}};
    EXPECT_EQ(current_options().beam, 8);
  }).join();
  EXPECT_EQ(current_options().beam, 7);
}

TEST(Context, SetHoldsUntilTheInnermostEnds) {
  const int before = current_options().wino, other = before == 0 ? 2 : 0;
  {
    const Context guard{{.debug = 1}};
    const Options& old = current_options();
    Context::set({.wino = other});
    EXPECT_EQ(current_options().wino, other);
    EXPECT_EQ(current_options().debug, 1);
    EXPECT_EQ(old.wino, before);  // still there
    message_of<ValueError>([] { Context::set({.wino = 7}); });
    EXPECT_EQ(current_options().wino, other);
  }
  EXPECT_EQ(current_options().wino, before);
  Context::set({.wino = other});
  std::thread([&] { EXPECT_EQ(current_options().wino, other); }).join();
  Context::set({.wino = before});
  EXPECT_EQ(current_options().wino, before);
}

TEST(Context, SpecMinusOneIsTheChoiceOfTheBuild) {
  Context guard{{.spec = -1}};
#ifdef TINYGRAD_VERIFY
  EXPECT_EQ(current_options().spec, 1);
#else
  EXPECT_EQ(current_options().spec, 0);
#endif
}

}  // namespace
}  // namespace tinygrad
