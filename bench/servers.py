"""Servers on a disk, for the scripts in this folder that measure stores at the other end of a wire."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import bench


class Postgres:
    """Refuses to run as root, so root lends it the user that Debian's package made."""

    def __init__(self, folder, settings):
        self.folder = folder / "postgres"
        self.programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.folder.mkdir()
        folder.chmod(0o755)
        if bench.os.getuid() == 0:
            bench.shutil.chown(self.folder, "postgres", "postgres")
        self.run("initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8",
                 "--locale=C", "--no-instructions")
        lines = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        with open(self.folder / "data" / "postgresql.conf", "a") as conf:
            conf.write(f"{lines}unix_socket_directories = '{self.folder}'\n")
        self.ctl("start", "-l", self.folder / "log")

    def run(self, program, *args):
        lent = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]
        subprocess.run([*(lent if bench.os.getuid() == 0 else []), self.programs / program, *map(str, args)],
                       check=True, stdout=subprocess.DEVNULL)

    def ctl(self, *args):
        self.run("pg_ctl", "-D", self.folder / "data", "-w", *args)

    def sql(self, statement, database="postgres"):
        return subprocess.run(["psql", "-X", "-q", "-At", "-h", self.folder, "-U", "postgres", "-d", database,
                               "-c", statement], check=True, capture_output=True, text=True).stdout.strip()

    def uri(self, database):
        return f"postgres:///{database}?host={self.folder}&user=postgres"


class Redis:
    """With appendonly and appendfsync always, its files on the disk of IDEM_BENCH_DIR."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(dir=bench.os.environ.get("IDEM_BENCH_DIR", "/var/tmp"))
        self.port = bench.free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder,
             "--appendonly", "yes", "--appendfsync", "always", "--save", "",
             "--auto-aof-rewrite-percentage", "0"],
            stdout=subprocess.DEVNULL)
        while subprocess.run(self.cli("ping"), capture_output=True).stdout != b"PONG\n":
            if self.process.poll() is not None:
                sys.exit("the server ended")

    def cli(self, *words):
        return ["redis-cli", "-p", str(self.port), *words]

    def ask(self, *words):
        return subprocess.run(self.cli(*words), check=True, capture_output=True, text=True).stdout

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
