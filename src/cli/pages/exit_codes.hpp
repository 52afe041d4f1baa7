#pragma once

#include <array>

namespace idem::cli {

/// What an exit code means: briefly for --help and the manual, and as a page tells it.
struct ExitMeaning {
  int code;
  const char* brief;
  const char* text;
};
inline constexpr std::array exit_meanings{
    ExitMeaning{0, "done", "done"},
    ExitMeaning{1, "failed",
                "failed, also because the login is missing or its role does not suffice; `idem "
                "status`, `idem doctor`: something needs an operator"},
    ExitMeaning{
        2, "wrong usage or settings",
        "wrong usage or settings: an option, a value, a file that is named and cannot be "
        "read, settings that the store contradicts, an order that the admin API does not accept"},
    ExitMeaning{3, "no answer", "nothing answered"},
    ExitMeaning{4, "not found", "not found"},
    ExitMeaning{5, "refused because of the state of a record, store or file",
                "refused by the state of a record, store or file: the order waits for an approval, "
                "the file to write is there (`idem init`, `idem audit export`), something differs "
                "or a status is not named (`idem reconcile`), the audit is not whole (`idem audit "
                "verify`), a store is damaged (`idem store check`), a copy cannot be made or "
                "finished (`idem store copy`), or a run ended before its last "
                "case (`idem check`)"}};

}  // namespace idem::cli
