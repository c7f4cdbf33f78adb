// Each mistake of the tables is its type of error, says what is wrong, and leaves every tensor as it was.
#include "mistakes.h"

namespace tinygrad::test {
namespace {

/// What can be seen of a tensor.
struct Seen {
  explicit Seen(const Tensor& t)
      : shape(t.shape()), dtype(t.dtype()), device(t.device()), is_param(t.is_param()), has_grad(t.grad().defined()), bytes(t.data()) {}
  bool operator==(const Seen&) const = default;

  Sizes shape;
  DType dtype;
  std::string device;
  bool is_param, has_grad;
  std::vector<std::byte> bytes;
};

std::vector<Seen> seen(const Givens& g) {
  const std::vector<Tensor> tensors = g.stored();
  return {tensors.begin(), tensors.end()};
}

TEST_P(Mistakes, AreTypedErrorsThatChangeNothing) {
  const Mistake& m = GetParam();
  const Context interpreted{{.dev = "INTERP"}};
  Givens givens;
  const std::vector<Seen> before = seen(givens);
  try {
    m.make(givens);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(typeid(e).name()), m.error->name()) << e.what();
    EXPECT_NE(std::string(e.what()).find(m.says), std::string::npos) << e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "no error of the library, but " << typeid(e).name() << ": " << e.what();
  }
  EXPECT_TRUE(seen(givens) == before) << "a tensor has changed";
  EXPECT_EQ((givens.vector + givens.matrix[0]).tolist(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(givens.lazy.tolist(), (std::vector<float>{2, 4, 6}));
  givens.vector.assign(givens.vector + 1);
  EXPECT_EQ(givens.vector.tolist(), (std::vector<float>{2, 3, 4}));
}

}  // namespace
}  // namespace tinygrad::test
