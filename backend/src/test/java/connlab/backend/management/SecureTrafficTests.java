package connlab.backend.management;

import static org.assertj.core.api.Assertions.assertThat;

import connlab.backend.BackendTest;
import connlab.backend.Wire;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpClient.Version;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.web.server.LocalManagementPort;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.test.context.TestPropertySource;

/** The traffic port with TLS and HTTP/2; the management port has neither. */
@BackendTest
@TestPropertySource(
        properties = {
            "CONNLAB_TLS=true",
            "CONNLAB_TLS_MAX=TLSv1.2",
            "CONNLAB_TLS_SESSION_CACHE=7",
            "CONNLAB_HTTP2=true",
            "CONNLAB_HTTP2_MAX_CONCURRENT_STREAMS=11",
            "CONNLAB_HTTP2_MAX_CONCURRENT_STREAM_EXECUTION=5",
        })
class SecureTrafficTests {

    private static final char[] PASSWORD = "no secret".toCharArray();

    @TempDir
    private static Path folder;

    private static KeyStore made;

    @LocalServerPort
    private int port;

    @LocalManagementPort
    private int managementPort;

    @DynamicPropertySource
    static void certificate(DynamicPropertyRegistry properties)
            throws IOException, InterruptedException, GeneralSecurityException {
        Path store = folder.resolve("store");
        new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-alias",
                        "own",
                        "-keyalg",
                        "EC",
                        "-dname",
                        "CN=localhost",
                        "-ext",
                        "san=dns:localhost",
                        "-keystore",
                        store.toString(),
                        "-storepass",
                        new String(PASSWORD))
                .inheritIO()
                .start()
                .waitFor();
        made = KeyStore.getInstance("PKCS12");
        try (InputStream input = Files.newInputStream(store)) {
            made.load(input, PASSWORD);
        }
        Path certificate = pem("CERTIFICATE", made.getCertificate("own").getEncoded());
        Path key = pem("PRIVATE KEY", made.getKey("own", PASSWORD).getEncoded());
        properties.add("server.ssl.certificate", () -> "file:" + certificate);
        properties.add("server.ssl.certificate-private-key", () -> "file:" + key);
    }

    private static Path pem(String kind, byte[] content) throws IOException {
        String text = Base64.getMimeEncoder().encodeToString(content);
        return Files.writeString(
                folder.resolve(kind.replace(' ', '-')),
                "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n");
    }

    @Test
    void aClientThatOffersHttp2SpeaksIt() throws IOException, InterruptedException, GeneralSecurityException {
        HttpResponse<String> answer = ask(Version.HTTP_2);

        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.version()).isEqualTo(Version.HTTP_2);
        assertThat(answer.sslSession().orElseThrow().getProtocol()).isEqualTo("TLSv1.2");
    }

    @Test
    void aClientThatDoesNotSpeaksHttp1() throws IOException, InterruptedException, GeneralSecurityException {
        assertThat(ask(Version.HTTP_1_1).version()).isEqualTo(Version.HTTP_1_1);
    }

    @Test
    void theSettingsInForceAreReported() throws IOException {
        try (Wire management = new Wire(managementPort)) {
            assertThat(management.get("/actuator/tomcat").<Map<String, Object>>json("$.settings"))
                    .containsEntry("tls", true)
                    .containsEntry("tlsMin", "TLSv1.2")
                    .containsEntry("tlsMax", "TLSv1.2")
                    .containsEntry("tlsSessionTickets", true)
                    .containsEntry("tlsSessionCache", 7)
                    .containsEntry("http2", true)
                    .containsEntry("http2MaxConcurrentStreams", 11)
                    .containsEntry("http2MaxConcurrentStreamExecution", 5);
        }
    }

    private HttpResponse<String> ask(Version version)
            throws IOException, InterruptedException, GeneralSecurityException {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("own", made.getCertificate("own"));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        try (HttpClient client =
                HttpClient.newBuilder().version(version).sslContext(context).build()) {
            URI address = URI.create("https://localhost:" + port + "/api/delay");
            return client.send(HttpRequest.newBuilder(address).build(), BodyHandlers.ofString());
        }
    }
}
