#pragma once

#include <idem/record.hpp>
#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What would become of a request, which is not run for that.
namespace idem {

/// The request in question.
struct RequestInQuestion {
  std::string method;
  std::string target;
  std::vector<Field> headers{};
  std::string body{};
  /// Whose it is, in place of what the gateway would find out.
  std::optional<std::string> scope{};
};

/// Why a request cannot be explained.
struct NotExplained {
  std::string wrong{};                ///< With the request itself: a sentence that names the place.
  std::optional<StoreError> store{};  ///< Or the store did not answer.
};

/// Nothing of it is a stored body, a credential or a key; of `record` only a summary may be shown.
struct Explanation {
  enum class Outcome : std::uint8_t {
    execute,      ///< It would be sent to the upstream, or stored to be sent.
    replay,       ///< It would get the stored answer.
    in_progress,  ///< An attempt has the key.
    misuse,       ///< The key was used for another request.
    unknown,      ///< It is not known whether an earlier attempt ran.
    expired,      ///< The stored answer is no longer kept.
    refused,      ///< For another reason.
    pass,         ///< It would go to the upstream without a record.
  };
  struct Key {
    std::string field;   ///< The field's name as it came.
    std::string syntax;  ///< "quoted" or "bare".
    std::size_t bytes = 0;
  };
  struct Fingerprint {
    std::optional<bool> matches{};  ///< None: there is no record, or nobody knows.
    std::vector<std::string> counted{};
    std::vector<std::string> left_out{};
    std::string form;  ///< How the body counts.
  };
  /// Of Idem's own answers, `code` and `retry` as in the problem document.
  struct Answer {
    std::optional<int> status{};  ///< None: the upstream decides.
    std::string code{};
    std::string retry{};
  };
  /// Values are masked.
  struct Difference {
    std::string part;
    std::string stored;
    std::string sent;
  };

  Outcome outcome = Outcome::refused;
  std::string why;                     ///< Sentences for people.
  std::optional<std::string> route{};  ///< Its name, else its path.
  bool in_shadow = false;              ///< The request passes; the rest is what enforcing would do.
  std::optional<std::string> scope{};
  std::optional<std::string> operation{};
  std::optional<Key> key{};
  std::optional<RecordId> id{};  ///< Of the record, or of the one that would be made.
  std::optional<Record> record{};
  std::optional<Fingerprint> fingerprint{};
  Answer answer{};
  std::vector<Difference> differences{};
};

std::string_view name_of(Explanation::Outcome outcome) noexcept;

}  // namespace idem
