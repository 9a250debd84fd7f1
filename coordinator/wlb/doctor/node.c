#include "coordinator/wlb/doctor/node.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <munge.h>

#include "coordinator/client/config.h"
#include "coordinator/client/credential.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/child_output.h"
#include "coordinator/wlbd/config.h"

/* Returns the socket of MUNGE, also if no coordinator is configured. */
static const char *munge_socket(struct wlb_client_config *config)
{
	if (wlb_client_config_load(config, NULL) == 0)
		return config->munge_socket;
	const char *socket = getenv("WLB_MUNGE_SOCKET");
	return socket != NULL ? socket : "";
}

static munge_err_t decode_credential(const char *socket, const char *credential)
{
	munge_ctx_t context = munge_ctx_create();
	void *payload = NULL;
	int length;
	uid_t uid;
	gid_t gid;
	if (*socket != '\0')
		munge_ctx_set(context, MUNGE_OPT_SOCKET, socket);
	munge_err_t rc = munge_decode(credential, context, &payload, &length, &uid, &gid);
	free(payload);
	munge_ctx_destroy(context);
	return rc;
}

void wlb_doctor_munge(struct wlb_doctor *doctor)
{
	struct wlb_client_config config;
	struct wlb_error error;
	const char *socket = munge_socket(&config);
	char *credential = wlb_credential_make(socket, "wlb", 3, &error);
	if (credential == NULL) {
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "munge", "start it: systemctl start munge", "%s",
		                error.message);
		return;
	}
	munge_err_t rc = decode_credential(socket, credential);
	free(credential);
	if (rc == EMUNGE_SUCCESS)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "munge", "", "credentials are made and decoded");
	else
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "munge", "check munged's log and this host's clock",
		                "a credential just made is not decoded: %s", munge_strerror(rc));
}

/* What /healthz says of the database of a wlbd that acts. */
static void note_database(struct wlb_doctor *doctor, int status, const char *database, const char *other)
{
	if (status == 200 && other != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "database", "stop one wlbd, or give it a database of its own",
		                "another wlbd, connected %s, uses it too", other);
	else if (status == 200 && strcmp(database, "ok") == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "database", "", "PostgreSQL answers with the right schema");
	else
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "database", "start PostgreSQL, or run 'wlb db migrate'", "%s",
		                database);
}

/* `role`: NULL where no other stands by. */
static void note_version(struct wlb_doctor *doctor, const char *check, const char *version, const char *role)
{
	if (strcmp(version, WLB_VERSION) != 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, check, "install the same version everywhere",
		                "wlbd has version %s, this is " WLB_VERSION, version);
	else
		wlb_doctor_note(doctor, WLB_FINDING_OK, check, "", "wlbd %s %s", version,
		                role == NULL                   ? "answers"
		                : strcmp(role, "standby") == 0 ? "stands by"
		                                               : "acts");
}

/* Returns whether this wlbd acts. `is_one_of_two`: that it does not answer stops no run. */
static bool check_health(struct wlb_doctor *doctor, const char *check, const struct wlb_client_config *config,
                         bool is_one_of_two)
{
	struct wlb_error error = {.message = "out of memory"};
	struct wlb_reply reply;
	struct wlb_connection *connection = wlb_connection_new(config);
	int rc = connection == NULL ? -1
	                            : wlb_connection_request(connection, "GET", "/healthz", NULL, 5000, &reply, &error);
	wlb_connection_free(connection);
	if (rc != 0) {
		wlb_doctor_note(doctor, is_one_of_two ? WLB_FINDING_WARN : WLB_FINDING_FAIL, check,
		                "start it: systemctl start wlbd, or correct WLB_COORDINATOR", "%s", error.message);
		return false;
	}
	const char *version = "?", *database = "?", *other = NULL, *role = NULL;
	json_t *health = json_loadb(reply.body, reply.length, 0, NULL);
	json_unpack(health, "{s?s, s?s, s?s, s?s}", "version", &version, "database", &database, "other_wlbd", &other,
	            "role", &role);
	bool is_acting = role == NULL || strcmp(role, "standby") != 0;
	note_version(doctor, check, version, role);
	if (is_acting)
		note_database(doctor, reply.status, database, other);
	json_decref(health);
	free(reply.body);
	return is_acting;
}

/* Each of the coordinators that the configuration names. */
static void check_coordinators(struct wlb_doctor *doctor, const struct wlb_client_config *config)
{
	static const char *const checks[WLB_COORDINATORS_MAX] = {"coordinator", "second coordinator"};
	int acting = 0;
	for (int i = 0; i < config->coordinator_count; i++) {
		struct wlb_client_config one = *config;
		one.coordinators[0] = config->coordinators[i];
		one.coordinator_count = 1;
		acting += check_health(doctor, checks[i], &one, config->coordinator_count > 1);
	}
	if (config->coordinator_count > 1 && acting == 0)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "acting coordinator",
		                "start PostgreSQL, or wait for as long as lease_ms of wlbd.conf", "none acts");
	else if (acting > 1)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "acting coordinator",
		                "set lease_ms in both wlbd.conf, with the same database", "both act");
}

void wlb_doctor_coordinator(struct wlb_doctor *doctor)
{
	struct wlb_client_config config;
	struct wlb_error error;
	int status = 0;
	if (wlb_client_config_load(&config, &error) != 0) {
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "coordinator", "", "%s", error.message);
		return;
	}
	check_coordinators(doctor, &config);
	struct wlb_connection *connection = wlb_connection_new(&config);
	if (connection == NULL)
		return;
	json_t *runs = wlb_api_request(connection, "GET", "/v1/runs?limit=1", NULL, 5000, &status, &error);
	if (runs != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "credential", "",
		                "the coordinator accepts it, and proves that it runs as uid %u",
		                config.coordinator_uid);
	else if (status == 0)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "credential",
		                "this host and the coordinator's need the same munge.key and clock, and "
		                "coordinator_user in wlb.conf the account that wlbd runs as",
		                "%s", error.message);
	json_decref(runs);
	wlb_connection_free(connection);
}

/* On a host that has wlbd.conf; who may not read it can say nothing about it. */
void wlb_doctor_settings(struct wlb_doctor *doctor)
{
	const char *path = wlbd_config_path();
	struct wlb_client_config client;
	struct wlbd_config config;
	struct wlb_error error;
	if (access(path, R_OK) != 0)
		return;
	uid_t account = wlb_client_config_load(&client, NULL) == 0 ? client.coordinator_uid : 0;
	if (wlbd_config_load(path, &config, &error) != 0)
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "wlbd.conf", "correct it; wlbd does not start with it", "%s",
		                error.message);
	else if (wlbd_config_check_readers(path, &config, account, &error) != 0)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "wlbd.conf", "", "%s", error.message);
	else
		wlb_doctor_note(doctor, WLB_FINDING_OK, "wlbd.conf", "", "%s: the settings are valid", path);
}

void wlb_doctor_mpi(struct wlb_doctor *doctor)
{
	char output[1024];
	int code = wlb_output_of_program((char *[]){"ompi_info", "--version", NULL}, output, sizeof(output));
	output[strcspn(output, "\n")] = '\0';
	if (code == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "mpi", "", "%s", output);
	else
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "mpi", "install Open MPI on every node (Debian: openmpi-bin)",
		                "ompi_info cannot be run");
}

void wlb_doctor_save_dir(struct wlb_doctor *doctor)
{
	char probe[PATH_MAX];
	struct statvfs space;
	snprintf(probe, sizeof(probe), "%s/.wlb-doctor.XXXXXX", doctor->save_dir);
	int fd = mkstemp(probe);
	if (fd < 0) {
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "save directory", "name another one: --save-dir DIR",
		                "%s: nothing can be written there: %s", doctor->save_dir, strerror(errno));
		return;
	}
	int rc = fstatvfs(fd, &space);
	close(fd);
	unlink(probe);
	double free_gb = rc == 0 ? (double)space.f_bavail * (double)space.f_frsize / 1e9 : 0;
	wlb_doctor_note(doctor, free_gb < 1 ? WLB_FINDING_WARN : WLB_FINDING_OK, "save directory",
	                free_gb < 1 ? "make space or name another one: --save-dir DIR" : "",
	                "%s can be written, %.1f GB are free; it must be the same on every node", doctor->save_dir,
	                free_gb);
}
