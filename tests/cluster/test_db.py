#!/usr/bin/env python3
"""wlb db: migrations that cannot be applied change nothing, and the message says what to do."""
import pathlib
import re
import shutil
import subprocess
import tempfile

import harness
from harness import ClusterTest, main

MIGRATIONS = harness.ROOT / "sql/migrations"


class Schema(ClusterTest):
    nodes = 1

    def setUp(self):
        """Each test has a database of its own, without a schema."""
        self.name = f"db_{self._testMethodName}"[:60]
        self.cluster.sql(f"create database {self.name}")
        self.addCleanup(self.cluster.sql, f"drop database {self.name} with (force)")
        self.newest = max(int(path.name[:4]) for path in MIGRATIONS.glob("*.sql"))

    def database(self, **changed):
        words = {"host": self.cluster.env["PGHOST"], "user": self.cluster.env["PGUSER"], "dbname": self.name} | changed
        return " ".join(f"{key}={value}" for key, value in words.items())

    def db(self, verb, folder=None, **changed):
        """(exit code, standard output, message) of `wlb db VERB`."""
        result = self.cluster.run("wlb", "db", verb, "--database", self.database(**changed), check=False,
                                  env={"WLB_MIGRATIONS": str(folder)} if folder else None)
        self.assertLessEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.returncode, result.stdout, result.stderr

    def sql(self, query):
        return self.cluster.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.name, "-c",
                                query).stdout.split()

    def versions(self):
        return [int(word) for word in self.sql("select version from schema_version order by 1")]

    def migrations(self):
        """A copy of the folder of migrations."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.work)) / "migrations"
        shutil.copytree(MIGRATIONS, folder)
        self.addCleanup(shutil.rmtree, folder.parent)
        return folder

    def refused(self, verb, *words, folder=None, **changed):
        code, _, message = self.db(verb, folder, **changed)
        self.assertEqual(code, 1, message)
        for word in words:
            self.assertIn(word, message)

    def test_status_before_and_after(self):
        self.refused("status", "has schema 0", f"needs {self.newest}", "wlb db migrate")
        self.assertEqual(self.db("migrate")[0], 0)
        code, text, _ = self.db("status")
        self.assertEqual((code, text), (0, f"the database has schema {self.newest}, this version needs {self.newest}\n"))
        self.assertEqual(self.db("migrate")[1], f"schema {self.newest} is up to date\n")

    def test_a_connection_string_that_does_not_parse(self):
        for verb in ("status", "migrate"):
            code, _, message = self.db(verb, password="two SECRET")
            self.assertEqual(code, 2, message)
            self.assertIn("--database: ", message)
            self.assertNotIn("SECRET", message)

    def test_a_password_in_the_command_line(self):
        self.db("migrate")
        code, text, warning = self.db("status", password="SECRET")
        self.assertEqual(code, 0, warning)
        self.assertIn("every user of this host can read a password of a command line", warning)
        self.assertNotIn("SECRET", text + warning)

    def test_a_newer_schema_is_left_alone(self):
        self.db("migrate")
        self.sql("insert into schema_version (version, file) values (9999, 'later.sql')")
        for verb in ("status", "migrate"):
            self.refused(verb, "has schema 9999, newer than", "upgrade WLB")
        self.assertEqual(self.versions(), [*range(1, self.newest + 1), 9999])

    def test_a_migration_that_fails_is_undone(self):
        """Those before it stay, and the next try goes on after them."""
        folder = self.migrations()
        last = next(folder.glob(f"{self.newest:04d}_*.sql"))
        last.write_text("create table half (x integer); select 1 / 0;", encoding="utf-8")
        self.refused("migrate", last.name, "division by zero", folder=folder)
        self.assertEqual(self.versions(), [*range(1, self.newest)])
        self.assertEqual(self.sql("select to_regclass('half') is null"), ["t"])
        self.assertEqual(self.db("migrate")[0], 0)
        self.assertEqual(self.versions(), [*range(1, self.newest + 1)])

    def test_a_migration_that_takes_its_own_row(self):
        folder = self.migrations()
        last = next(folder.glob(f"{self.newest:04d}_*.sql"))
        last.write_text(f"insert into schema_version (version, file) values ({self.newest}, 'x');", encoding="utf-8")
        self.refused("migrate", last.name, "duplicate key", folder=folder)
        self.assertEqual(self.versions(), [*range(1, self.newest)])

    def test_a_folder_that_is_not_this_versions(self):
        self.refused("migrate", "/nowhere", "set WLB_MIGRATIONS", folder="/nowhere")
        folder = self.migrations()
        shutil.copy(next(folder.glob("0001_*.sql")), folder / "0001_again.sql")
        self.refused("migrate", str(folder), "2 files 0001_*.sql", "must have one", folder=folder)
        for path in folder.glob("0001_*.sql"):
            path.unlink()
        self.refused("migrate", "0 files 0001_*.sql", folder=folder)
        self.assertEqual(self.versions(), [])

    def begin(self, *command):
        """A process of the cluster, which ends with the test; returns its Popen."""
        process = subprocess.Popen(command, env=self.cluster.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_a_second_migration_waits_for_the_first(self):
        """Whatever the timeouts of the connection string are."""
        first = self.begin("psql", "-X", "-q", "-d", self.name)
        first.stdin.write("select pg_advisory_lock(x'574c42'::int);\n")
        first.stdin.flush()
        held = "select count(*) from pg_locks where locktype = 'advisory' and objid = x'574c42'::int::oid and granted"
        harness.wait_for("the lock", lambda: self.sql(held) == ["1"], 10)
        second = self.begin(harness.BUILD / "bin/wlb", "db", "migrate", "--database",
                            self.database(options="'-cstatement_timeout=300 -clock_timeout=300'"))
        with self.assertRaises(subprocess.TimeoutExpired):
            second.wait(timeout=2)
        first.communicate(timeout=10)
        text, _ = second.communicate(timeout=60)
        self.assertEqual(second.returncode, 0, text)
        self.assertEqual(self.db("status")[0], 0)

    def test_a_database_of_another_encoding(self):
        self.cluster.sql("create database of_ascii encoding 'SQL_ASCII' template template0 locale 'C'")
        self.addCleanup(self.cluster.sql, "drop database of_ascii with (force)")
        for verb in ("migrate", "status"):
            code, _, warning = self.db(verb, dbname="of_ascii")
            self.assertEqual(code, 0, warning)
            for words in ("warning: ", "encoding SQL_ASCII", "should have UTF8", "createdb -E UTF8"):
                self.assertIn(words, warning)
        self.assertNotIn("warning", self.db("status")[2])
        conf = self.cluster.work / "of_ascii.conf"
        text = re.sub("^listen = .*", "listen = 127.0.0.1:0", (self.cluster.dir / "etc/wlbd.conf").read_text(encoding="utf-8"),
                      flags=re.MULTILINE)
        conf.write_text(text.replace("dbname=wlb", "dbname=of_ascii"), encoding="utf-8")
        wlbd = subprocess.Popen([harness.BUILD / "bin/wlbd", "--config", conf], env=self.cluster.env, text=True,
                                stderr=subprocess.PIPE)
        self.addCleanup(wlbd.wait, 20)
        self.addCleanup(wlbd.terminate)
        for line in wlbd.stderr:
            if "encoding" in line:
                break
        self.assertIn("database: the database has the encoding SQL_ASCII", line)

    def test_a_database_that_does_not_let_us_in(self):
        self.refused("status", "database: ", "/nowhere", host="/nowhere")
        self.refused("migrate", "database: ", "does not exist", dbname="no_such_database")
        self.sql("create role stranger login")
        self.addCleanup(self.cluster.sql, "drop role stranger")
        self.refused("migrate", "schema_version: ", "permission denied", user="stranger")
        self.db("migrate")
        self.refused("status", "schema_version: ", "permission denied", user="stranger")


if __name__ == "__main__":
    main()
