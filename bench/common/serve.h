#pragma once
// A side of bench/kernels: a process that prepares works and times calls of them as it is told, a line of JSON each way.
//   {"do": "prepare", "case": {...}}     {"seconds": of a call, and what else is known}, or {"error": text}
//   {"do": "time", "calls": n}           {"seconds": of a call, the mean of n after one that does not count}
//   {"do": "release"}                    {}, or what is better known by now
// The case is what rows.py says.

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace bench {

using Json = nlohmann::ordered_json;

struct Prepared {
  std::function<void()> call;
  Json facts = Json::object();
  std::function<Json()> facts_after = {};
};

inline double seconds_of(const std::function<void()>& call, int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / double(count);
}

inline Json answer(const Json& request, Prepared& work, const std::function<Prepared(const Json&)>& prepare) {
  const std::string what = request.at("do");
  if (what == "prepare") {
    work = {};
    work = prepare(request.at("case"));
    seconds_of(work.call, 2);
    Json reply = work.facts;
    reply["seconds"] = seconds_of(work.call, 1);
    return reply;
  }
  if (what == "time") {
    const int64_t calls = request.at("calls");
    if (calls > 1) work.call();
    return {{"seconds", seconds_of(work.call, calls)}};
  }
  Json reply = work.facts_after ? work.facts_after() : Json::object();
  work = {};
  return reply;
}

/// Until the end of standard input. The first line says the version and what else is known of the side.
inline int serve(const std::string& version, const std::function<Prepared(const Json&)>& prepare, Json about = Json::object()) {
  Prepared work;
  about["version"] = version;
  std::cout << about.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    Json reply;
    try {
      reply = answer(Json::parse(line), work, prepare);
    } catch (const std::exception& e) {
      reply = {{"error", e.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}

}  // namespace bench
