"""All damages of a store's files: file x damage x class of offset. Nothing here knows the store: the files are those
that a listing finds, and offsets are taken from their lengths and from where their bytes end.
"""
import collections
import pathlib
import random
import re
import shutil

BLOCK = 4096  # Of a disk, and of SQLite's pages and the log's frames.
SECTOR = 512

Case = collections.namedtuple("Case", "store end file damage offset_class apply")


def kind_of(path):
    """Files with numbers in their names are of one kind, and so are the folders of shards but the first."""
    return re.sub(r"\d+", "N", path)


def files_of(folder):
    return sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file())


def folders_of(folder):
    return sorted(str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_dir())


def offsets(data, rest, chance):
    """{class: offset} for `data` bytes, after which `rest` bytes of zeros follow."""
    found = {"header": chance.randrange(min(16, data)), "end": data - 1}
    if data > 32:
        found["first record"] = chance.randrange(16, min(data, BLOCK))
        found["middle"] = data // 2 + chance.randrange(max(1, data // 8))
        found["just before the end"] = data - 1 - chance.randrange(1, min(200, data // 2))
    if data > 2 * BLOCK:
        block = chance.randrange(1, (data - 1) // BLOCK) * BLOCK
        found["block's first byte"] = block
        found["block's last byte"] = block - 1
        found["last block"] = (data - 1) // BLOCK * BLOCK
    if rest > BLOCK:
        found["room after the end"] = data + chance.randrange(rest)
    return found


def _flip(file, at, bit):
    bytes_ = bytearray(file.read_bytes())
    bytes_[at] ^= 1 << bit
    file.write_bytes(bytes_)


def _zero(file, at, size):
    bytes_ = bytearray(file.read_bytes())
    end = min(len(bytes_), at + size)
    bytes_[at:end] = bytes(end - at)
    file.write_bytes(bytes_)


def _drop(file, at, size):
    bytes_ = file.read_bytes()
    file.write_bytes(bytes_[:at] + bytes_[at + size:])


def _swap(file, at, size, other):
    bytes_ = bytearray(file.read_bytes())
    bytes_[at:at + size], bytes_[other:other + size] = bytes_[other:other + size], bytes_[at:at + size]
    file.write_bytes(bytes_)


def _cut(file, at):
    with open(file, "r+b") as opened:
        opened.truncate(at)


def _exchange(one, other):
    spare = one.with_name(one.name + ".swapped")
    one.rename(spare)
    other.rename(one)
    spare.rename(other)


def _cases_of_file(image, name, chance):
    """(damage, class of offset, function of the folder of the files)."""
    bytes_ = (image.folder / name).read_bytes()
    data = len(bytes_.rstrip(b"\0"))
    rest = len(bytes_) - data
    if data > 0:
        for of, at in offsets(data, rest, chance).items():
            bit = chance.randrange(8)
            yield "flipped", of, lambda to, at=at, bit=bit: _flip(to / name, at, bit)
            yield "zeroed", of, lambda to, at=at: _zero(to / name, at, SECTOR)
            yield "zeroed to its end", of, lambda to, at=at: _zero(to / name, at, len(bytes_))
            yield "cut", of, lambda to, at=at: _cut(to / name, at)
            yield "bytes missing", of, lambda to, at=at: _drop(to / name, at, min(BLOCK, max(1, data // 4)))
            block = at // BLOCK * BLOCK
            if data > 2 * BLOCK:
                other = (block + BLOCK * chance.randrange(1, data // BLOCK)) % (data // BLOCK * BLOCK)
                yield "blocks swapped", of, lambda to, a=block, b=other: _swap(to / name, a, BLOCK, b)
    whole = "whole file"
    garbage = chance.randbytes(BLOCK)
    yield "zeroed", whole, lambda to: _zero(to / name, 0, len(bytes_))
    yield "cut", whole, lambda to: _cut(to / name, 0)
    yield "missing", whole, lambda to: (to / name).unlink()
    yield "doubled", whole, lambda to: (to / name).write_bytes(bytes_ + bytes_)
    yield "garbage after its end", whole, lambda to: (to / name).write_bytes(bytes_ + garbage)
    if (image.older / name).is_file() and (image.older / name).read_bytes() != bytes_:
        yield "older", whole, lambda to: shutil.copy(image.older / name, to / name)
    folder, _, last = name.rpartition("/")
    if number := re.match(r"0*(\d+)(\D.*)$", last):
        width = len(last) - len(number[2])
        copy = f"{folder}/{int(number[1]) + 1:0{width}}{number[2]}"
        if not (image.folder / copy).exists():
            yield "copied to the next number", whole, lambda to: shutil.copy(to / name, to / copy)


def _cases_of_pairs(image, names):
    """Files of one kind in each other's place."""
    for one, other in zip(names, names[1:]):
        if kind_of(one) == kind_of(other):
            yield one, "swapped with the next of its kind", "whole file", \
                lambda to, a=one, b=other: _exchange(to / a, to / b)


def what_nothing_tells(case):
    """Why no program can notice this damage; None: one can. docs/limits.md says so."""
    is_whole_store = case.file in ("idem.db", "idem.db/")
    is_gone = case.damage == "missing" or (case.offset_class == "whole file" and case.damage in ("cut", "zeroed"))
    # Of a database whose last gateway was killed a log is left, from which a start knows.
    if is_whole_store and is_gone and (case.end == "stopped" or case.file == "idem.db/"):
        return "nothing is left of the store, and a start makes a new one (store_new; store_id refuses it)"
    if is_whole_store and case.damage == "older" and (case.end == "stopped" or case.file == "idem.db/"):
        return "an older copy of the whole store is whole"
    if case.file == "idem.db-wal" and _ends_like_a_crash(case):
        return "SQLite's log ends as it does when the machine crashes, and no commit follows"
    return None


def _ends_like_a_crash(case):
    """Of a log behind whose damage no frame is where one would be. Without its header it is refused, and so is damage
    in front of a later commit."""
    if case.offset_class in ("header", "whole file"):
        return False
    # What follows missing bytes is at no place of a frame.
    if case.damage in ("cut", "zeroed to its end", "bytes missing"):
        return True
    is_in_the_last_commit = case.offset_class in ("end", "just before the end", "last block")
    return case.damage in ("flipped", "zeroed") and is_in_the_last_commit


def cases_of(image, seed):
    """All of them, one for each file, damage and class of offset. The seed and the file give the offsets."""
    def case(name, damage, of, apply):
        return Case(image.store, image.end, name, damage, of, apply)

    names = files_of(image.folder)
    for name in names:
        for damage, of, apply in _cases_of_file(image, name, random.Random(f"{seed} {name}")):
            yield case(name, damage, of, apply)
    # Sorted by kind, so that the files of several shards come together.
    for name, damage, of, apply in _cases_of_pairs(image, sorted(names, key=kind_of)):
        yield case(name, damage, of, apply)
    for name in folders_of(image.folder):
        yield case(name + "/", "missing", "whole folder", lambda to, name=name: shutil.rmtree(to / name))
        if (image.older / name).is_dir():
            def bring_back(to, name=name):
                shutil.rmtree(to / name)
                shutil.copytree(image.older / name, to / name)
            yield case(name + "/", "older", "whole folder", bring_back)
