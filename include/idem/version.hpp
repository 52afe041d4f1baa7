#pragma once

/// @file
/// Which version of the library this is. Before 1.0 any minor version may change what programs rely
/// on, so its number is in the name of the namespace: a program that was compiled with the headers
/// of one version and linked with the archive of another one does not link.

/// The first number of the version.
#define IDEM_VERSION_MAJOR 0
/// The second one.
#define IDEM_VERSION_MINOR 1
/// The third one.
#define IDEM_VERSION_PATCH 0
/// The version as text.
#define IDEM_VERSION "0.1.0"
