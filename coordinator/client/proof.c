#include "coordinator/client/proof.h"

#include <string.h>

#include "common/digest.h"
#include "coordinator/client/credential.h"

/* Whether the reply orders nothing but to continue, and therefore needs no proof: each node receives one each second.
 */
static bool needs_no_proof(const struct wlb_proof_request *request, const struct wlb_reply *reply)
{
	static const char plain[] = "{\"order\":\"continue\"}";
	size_t path = strlen(request->path), bytes = sizeof(plain) - 1;
	return path > 7 && strcmp(request->path + path - 7, "/report") == 0 && reply->status == 200 &&
	       reply->length >= bytes && memcmp(reply->body, plain, bytes) == 0 &&
	       strspn(reply->body + bytes, "\r\n") == reply->length - bytes;
}

static int refuse(const struct wlb_client_config *config, struct wlb_error *error)
{
	return wlb_fail_in(error, "the coordinator %s:%s did not prove that it is wlbd", config->host, config->port);
}

static int refuse_unproved(const struct wlb_client_config *config, const struct wlb_reply *reply,
                           struct wlb_error *error)
{
	if (reply->status == 200)
		wlb_fail(error, "its reply has no proof; upgrade wlbd, or somebody else listens there");
	else
		wlb_fail(error, "it answers %d without a proof: %.300s", reply->status, reply->body);
	return refuse(config, error);
}

int wlb_proof_check(const struct wlb_client_config *config, const struct wlb_proof_request *request,
                    const struct wlb_http_head *head, struct wlb_reply *reply, struct wlb_error *error)
{
	char digest[WLB_DIGEST_SIZE];
	uid_t uid;
	reply->proved = false;
	if (strncmp(request->path, "/v1/", 4) != 0 || (head->proof[0] == '\0' && needs_no_proof(request, reply)))
		return 0;
	if (head->proof[0] == '\0')
		return refuse_unproved(config, reply, error);
	wlb_digest_reply(request->credential, reply->status, request->method, request->path, reply->body, reply->length,
	                 digest);
	if (wlb_credential_check(config->munge_socket, head->proof, digest, WLB_DIGEST_SIZE - 1, &uid, error) != 0)
		return refuse(config, error);
	if (uid != config->coordinator_uid) {
		wlb_fail(error,
		         "it runs as uid %u, trusted is %s; set coordinator_user in wlb.conf, or somebody else "
		         "listens there",
		         uid, config->coordinator_user[0] != '\0' ? config->coordinator_user : "root");
		return refuse(config, error);
	}
	reply->proved = true;
	return 0;
}
