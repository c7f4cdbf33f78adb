#pragma once
#include <algorithm>
#include <chrono>
#include <vector>

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + std::ptrdiff_t(of.size() / 2), of.end());
  return of[of.size() / 2];
}
