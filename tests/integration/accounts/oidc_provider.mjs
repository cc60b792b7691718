// An OpenID provider with people of tests: node oidc_provider.mjs PORT REDIRECT_URL PACKAGES. Its own pages log in whoever names one.
import { pathToFileURL } from "node:url";

const [port, redirectUrl, packages] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${packages}/oidc-provider/lib/index.js`));

const people = {
  boss: { email: "boss@globex.example", email_verified: true, name: "The Boss" },
  owner: { email: "Owner@example.com", email_verified: true, name: "O" },
  liar: { email: "owner@example.com", email_verified: false, name: "Not O" },
  stranger: { email: "stranger@example.com", email_verified: true, name: "S" },
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "playhead", client_secret: "a secret: of sixteen+", redirect_uris: [redirectUrl] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  cookies: { keys: ["a key of tests"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
});
provider.listen(Number(port), "127.0.0.1");
