#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

namespace idem::cli {

/// Replaces this process by the program that now lies at its path, with the same arguments and
/// process id, while its sockets go on listening: connections that clients make meanwhile wait in
/// the kernel. One thread at a time.
class Handover {
 public:
  /// At the start of the process: a package may replace the file later.
  Handover();
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  /// Whether the program accepts the present settings: runs its `config check --ask-store`, for at
  /// most 10 s. The error is what it wrote.
  std::expected<void, std::string> check() const;

  /// Keeps this socket listening for the next process, also when its owner here closes it. `role`:
  /// its name there.
  void keep(int socket, std::string role);

  /// Never returns, unless the program cannot be run; then the reason. No thread of the process may
  /// use a descriptor any more: the sockets take the lowest numbers. All others but the standard
  /// ones end with the process.
  std::string exec();

 private:
  std::string program_;
  std::vector<std::string> arguments_;  ///< With the program's name.
  std::vector<std::pair<int, std::string>> kept_;
};

}  // namespace idem::cli
