#pragma once

#include "admin/login/tokens.hpp"
#include "loop/loop.hpp"
#include "loop/offload.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace idem::admin {

/// What the files of the tokens say.
struct KnownTokens {
  std::vector<TokenEntry> entries;
  std::string trouble;        ///< Why the tokens file cannot be read; empty: it can.
  std::optional<Digest> own;  ///< Of the operator's token.
};

/// Reads the files of the tokens for a loop, which must not wait for a disk. The loop's thread
/// only.
class TokenReading : public std::enable_shared_from_this<TokenReading> {
 public:
  /// Reads them once. `tokens_file` may be empty.
  TokenReading(const std::string& tokens_file, std::optional<OperatorToken> own);

  /// Afterwards known() is what the files said after this call. If the disk takes longer than
  /// limits::token_read_max, known() stays as it is, until the disk answers.
  Task<void> look(Loop& loop);
  const KnownTokens& known() const noexcept { return known_; }

 private:
  struct Looking;
  /// The reading thread's own.
  struct Files {
    TokenFile tokens;
    std::optional<OperatorToken> own;
    bool has_tokens_file = false;
    KnownTokens read();
  };
  void begin(Loop& loop, const std::shared_ptr<Looking>& looking);
  bool hangs() const noexcept;

  std::shared_ptr<Files> files_;
  KnownTokens known_;
  bool has_files_ = false;
  std::size_t under_way_ = 0;
  MonotonicTime since_{};  ///< The oldest of those under way began, or the one before it ended.
  Offload thread_{"idem-admin-key"};  ///< Its end waits for what it reads.
};

}  // namespace idem::admin
