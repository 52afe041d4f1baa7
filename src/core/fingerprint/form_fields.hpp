#pragma once

#include "core/bytes/digests.hpp"

#include <optional>
#include <string_view>

namespace idem {

/// The digest of an `application/x-www-form-urlencoded` body (URL Standard §5), in which the order
/// of fields of different names does not count. Fields enter as they are spelled, so nothing that
/// differs in a byte of a field looks alike.
///
/// Names are sorted by what servers take them for: decoded, without case, dots and blanks as
/// underscores (PHP's). So the order is kept wherever two names might be one to somebody. It is
/// kept, too, among the fields of one bracketed name (`a[...]`) when brackets are empty, or when
/// one field stands where others lie inside: there servers build arrays by the order.
///
/// None, so that the raw bytes count: a byte that the encoding does not produce, a `;` (once a
/// separator), a broken escape, more than limits::form_fields_max fields, and names that servers
/// mend each in its way: with a control character, a byte above ASCII, a blank at either end or
/// beside a bracket, a bracket that is not closed, not opened or opens the name; and two names for
/// one place, such as `a.b` and `a[b]`, or `a[1]` and `a[01]`. Time O(n log n).
std::optional<Digest> form_fields_digest(std::string_view body);

}  // namespace idem
