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


class Mariadb:
    """With each commit on the disk of IDEM_BENCH_DIR."""

    def __init__(self, folder, name="mariadb", *more):
        self.folder = folder / name
        self.folder.mkdir()
        folder.chmod(0o755)
        self.socket = self.folder / "socket"
        self.port = bench.free_port()
        lent = []
        if bench.os.getuid() == 0:
            bench.shutil.chown(self.folder, "mysql", "mysql")
            lent = ["--user=mysql"]
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db",
                        "--auth-root-authentication-method=normal", *lent], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            ["mariadbd", "--no-defaults", f"--datadir={self.folder / 'data'}", f"--socket={self.socket}",
             f"--port={self.port}", "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=1",
             "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=2G", "--max-connections=400",
             "--max-allowed-packet=256M", *more, *lent], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while subprocess.run(self.client("-e", "SELECT 1"), capture_output=True).returncode != 0:
            if self.process.poll() is not None:
                sys.exit("the server ended")
            bench.time.sleep(0.05)
        self.sql("CREATE USER idem@'127.0.0.1' IDENTIFIED BY 'bench'")
        self.sql("GRANT ALL ON *.* TO idem@'127.0.0.1'")

    def client(self, *words):
        return ["mariadb", "--no-defaults", f"--socket={self.socket}", "-u", "root", "-N", "-B", *map(str, words)]

    def sql(self, statement, database="mysql"):
        return subprocess.run(self.client(database, "-e", statement), check=True, capture_output=True,
                              text=True).stdout.strip()

    def fresh(self, name):
        self.sql(f"DROP DATABASE IF EXISTS {name}")
        self.sql(f"CREATE DATABASE {name}")

    def url(self, database):
        return f"mysql://idem:bench@127.0.0.1:{self.port}/{database}"

    def end(self):
        self.process.kill()
        self.process.wait()
