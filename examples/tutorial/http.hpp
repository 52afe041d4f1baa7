#pragma once

#include <idem/guard.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>

/// The parts that the steps of docs/tutorial.md share: the command line, HTTP in both directions, a
/// table.
namespace tutorial {

/// tutorial-stepN [STORE-URL] [PORT] [PROVIDER-URL] [SECRET-FILE]
struct Words {
  std::string store = "sqlite:./tutorial.db";
  int port = 9100;
  std::string provider = "http://127.0.0.1:9000";
  std::string secret{};  ///< The file's content; for step 5.
};
Words words_of(int count, char** words);

/// Opens the store, with a table `payments (id, request, state, charge)`; its events go to stderr.
/// Ends the process if the store cannot be opened.
std::unique_ptr<idem::Engine> open_engine(const Words& words);

struct Reply {
  int status = 0;        ///< 0: no answer came.
  bool was_sent = true;  ///< False: no byte of the request has left.
  std::string body{};
};
/// One POST on a connection of its own, with `key`, unless empty, as its Idempotency-Key. Waits
/// half a second for a connection, and for each write and read.
Reply post(const std::string& url, const std::string& body, const std::string& key = {});

/// Answers POSTs by their path; `GET /payments` shows the table. Runs until the process ends.
using Handler = std::function<idem::Response(const idem::Request&)>;
int serve(idem::Engine& engine, int port, const std::map<std::string, Handler>& handlers);

}  // namespace tutorial
