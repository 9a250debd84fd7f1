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

static void check_health(struct wlb_doctor *doctor, struct wlb_connection *connection)
{
	struct wlb_error error;
	struct wlb_reply reply;
	if (wlb_connection_request(connection, "GET", "/healthz", NULL, 5000, &reply, &error) != 0) {
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "coordinator",
		                "start it: systemctl start wlbd, or correct WLB_COORDINATOR", "%s", error.message);
		return;
	}
	const char *version = "?", *database = "?", *other = NULL;
	json_t *health = json_loadb(reply.body, reply.length, 0, NULL);
	json_unpack(health, "{s?s, s?s, s?s}", "version", &version, "database", &database, "other_wlbd", &other);
	if (strcmp(version, WLB_VERSION) == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "coordinator", "", "wlbd %s answers", version);
	else
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "coordinator", "install the same version everywhere",
		                "wlbd has version %s, this is " WLB_VERSION, version);
	if (reply.status == 200 && other != NULL)
		wlb_doctor_note(doctor, WLB_FINDING_WARN, "database", "stop one wlbd, or give it a database of its own",
		                "another wlbd, connected %s, uses it too", other);
	else if (reply.status == 200 && strcmp(database, "ok") == 0)
		wlb_doctor_note(doctor, WLB_FINDING_OK, "database", "", "PostgreSQL answers with the right schema");
	else
		wlb_doctor_note(doctor, WLB_FINDING_FAIL, "database", "start PostgreSQL, or run 'wlb db migrate'", "%s",
		                database);
	json_decref(health);
	free(reply.body);
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
	struct wlb_connection *connection = wlb_connection_new(&config);
	if (connection == NULL)
		return;
	check_health(doctor, connection);
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
