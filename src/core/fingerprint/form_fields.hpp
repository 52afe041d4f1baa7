#pragma once

#include "core/bytes/digests.hpp"

#include <optional>
#include <string_view>

namespace idem {

/// The digest of an `application/x-www-form-urlencoded` body (URL Standard §5), in which the order
/// of fields of different names does not count. The digest covers fields as they are spelled: two
/// bodies with a field that differs in one byte have different digests.
///
/// Names are sorted as servers read them: decoded, without case, dots and blanks as underscores
/// (PHP). So the order is kept wherever some server may read two names as one. It is also kept
/// among the fields of one bracketed name (`a[...]`) if brackets are empty, or if one field is the
/// parent of others: there servers build arrays in the order of the fields.
///
/// None, so that the raw bytes count: a byte that the encoding does not produce, a `;` (once a
/// separator), a broken escape, more than limits::form_fields_max fields, and names that servers
/// change in different ways: with a control character, a byte above ASCII, a blank at either end or
/// beside a bracket, a bracket that is not closed, not opened or opens the name; and two names for
/// one place, such as `a.b` and `a[b]`, or `a[1]` and `a[01]`. Time O(n log n).
std::optional<Digest> form_fields_digest(std::string_view body);

/// A digest of what the fields of such a body say, however they are spelled: names and values
/// decoded, names as loosely as any server reads them, neither order nor empty fields. Where two
/// bodies differ in it, they say different things to every server; otherwise they may.
///
/// None: a value is not UTF-8, so that its charset is unknown.
std::optional<Digest> form_values_digest(std::string_view body);

/// What a path and its query say, in the same sense.
std::string target_values(std::string_view target);

}  // namespace idem
