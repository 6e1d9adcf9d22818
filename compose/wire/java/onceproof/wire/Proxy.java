package onceproof.wire;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.UnknownHostException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.Security;
import java.util.HashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * The request proxy. It stands between Toxiproxy's links and the brokers, acts on single requests, and reports requests
 * and their responses.
 *
 * <pre>
 * Proxy LINKS.json      the link number i of the file is accepted on port 20000 + i, and leads to its upstream
 * </pre>
 *
 * Whoever controls it connects to port 8475 ({@link Control}).
 */
public final class Proxy {
    private static final int CONTROL_PORT = 8475;
    private static final int LINK_PORTS = 20_000;
    private static final int BACKLOG = 1_000;
    private static final int CONNECT_MS = 500;

    private Proxy() {
    }

    /**
     * A link: its name, and the broker to which it leads.
     *
     * The address of a broker that was killed answers nothing, and the one of a broker that has started again may be
     * another. So an attempt to connect is short, and the address is looked up again when it fails.
     */
    private static final class Link {
        final String name;
        final String host;
        final int port;
        int connections;
        private volatile InetAddress address;

        Link(String name, String host, int port) {
            this.name = name;
            this.host = host;
            this.port = port;
        }

        void connect(SocketChannel broker) throws IOException {
            if (address == null) {
                address = InetAddress.getByName(host);
            }
            broker.socket().connect(new InetSocketAddress(address, port), CONNECT_MS);
        }

        void lookUp() {
            try {
                address = InetAddress.getByName(host);
            } catch (UnknownHostException down) {
                // It keeps the address that it had, since that is most often the one that it will have again.
            }
        }
    }

    /** Accept connections until the process is killed. */
    public static void main(String[] arguments) throws IOException {
        Security.setProperty("networkaddress.cache.ttl", "0");
        Control control = new Control();
        control.listen(CONTROL_PORT);
        Selector selector = Selector.open();
        Map<SelectionKey, Link> links = new HashMap<>();
        int number = 0;
        for (JsonNode each : new ObjectMapper().readTree(new File(arguments[0]))) {
            String[] upstream = each.get("upstream").asText().split(":");
            ServerSocketChannel server = ServerSocketChannel.open();
            server.bind(new InetSocketAddress(LINK_PORTS + number++), BACKLOG);
            server.configureBlocking(false);
            SelectionKey key = server.register(selector, SelectionKey.OP_ACCEPT);
            links.put(key, new Link(each.get("name").asText(), upstream[0], Integer.parseInt(upstream[1])));
        }
        while (true) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                accept(((ServerSocketChannel) key.channel()).accept(), links.get(key), control);
            }
            selector.selectedKeys().clear();
        }
    }

    private static void accept(SocketChannel client, Link link, Control control) throws IOException {
        if (client == null) {
            return;
        }
        client.setOption(StandardSocketOptions.TCP_NODELAY, true);
        int number = ++link.connections;
        Thread thread = new Thread(() -> serve(client, link, number, control), link.name + " " + number);
        thread.setDaemon(true);
        thread.start();
    }

    private static void serve(SocketChannel client, Link link, int number, Control control) {
        try (client; SocketChannel broker = SocketChannel.open()) {
            link.connect(broker);
            broker.setOption(StandardSocketOptions.TCP_NODELAY, true);
            new Connection(number, link.name, control, client, broker).run();
            return;
        } catch (IOException down) {
            // The broker does not accept connections now; the client learns it from the end of its own.
        }
        link.lookUp();
    }
}
