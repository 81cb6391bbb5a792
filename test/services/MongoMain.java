import de.bwaldvogel.mongo.MongoBackend;
import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.DefaultQueryMatcher;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.QueryMatcher;
import de.bwaldvogel.mongo.backend.QueryResult;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.backend.memory.MemoryCollection;
import de.bwaldvogel.mongo.backend.memory.MemoryDatabase;
import de.bwaldvogel.mongo.backend.memory.index.MemoryUniqueIndex;
import de.bwaldvogel.mongo.bson.Document;
import io.netty.channel.Channel;
import java.util.Collection;
import java.util.List;
import java.util.stream.StreamSupport;
import org.h2.mvstore.MVStore;

/**
 * Runs mongo-java-server: {@code MongoMain HOST PORT memory|h2:FILE}. Prints "ready" and its address once it listens.
 *
 * <p>The memory backend gets three things that the library lacks and Skalds uses: the hello command, unique indexes
 * with a partialFilterExpression, and look-up by a unique index when the filter holds more fields than the index does
 * (a compare-and-set by id and state), for which the library would scan the collection.
 */
public class MongoMain {
    /** MongoDB 5.0's. The library claims 8, and the Go driver v2 refuses anything below 9. */
    private static final int WIRE_VERSION = 13;

    public static void main(String[] args) throws Exception {
        MongoBackend backend = args[2].startsWith("h2:") ? fileBackend(args[2].substring("h2:".length())) : new IndexedBackend();
        backend.version(new MongoVersion() {
            @Override
            public List<Integer> getVersionArray() {
                return List.of(5, 0, 0);
            }

            @Override
            public int getWireVersion() {
                return WIRE_VERSION;
            }
        });
        MongoServer server = new MongoServer(backend);
        if (Boolean.getBoolean("oplog")) {
            server.enableOplog();
        }
        server.bind(args[0], Integer.parseInt(args[1]));
        System.out.println("ready " + server.getConnectionString());
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
        Thread.currentThread().join();
    }

    private static MongoBackend fileBackend(String file) {
        MVStore store = new MVStore.Builder().fileName(file).autoCommitBufferSize(1024).open();
        store.setAutoCommitDelay(100); // milliseconds; what a crash may lose
        return new H2Backend(store) {
            @Override
            public Document handleCommand(Channel channel, String database, String command, Document query) {
                return isHello(command)
                    ? helloReply(super.handleCommand(channel, "admin", "isMaster", query))
                    : super.handleCommand(channel, database, command, query);
            }
        };
    }

    private static boolean isHello(String command) {
        return command.equalsIgnoreCase("hello");
    }

    private static Document helloReply(Document isMasterReply) {
        return isMasterReply.append("isWritablePrimary", true).append("helloOk", true);
    }

    private static class IndexedBackend extends MemoryBackend {
        @Override
        public MemoryDatabase openOrCreateDatabase(String name) {
            return new IndexedDatabase(name, getCursorRegistry());
        }

        @Override
        public Document handleCommand(Channel channel, String database, String command, Document query) {
            return isHello(command)
                ? helloReply(super.handleCommand(channel, "admin", "isMaster", query))
                : super.handleCommand(channel, database, command, query);
        }
    }

    private static class IndexedDatabase extends MemoryDatabase {
        /** The library does not hand the index's description to the method that makes the index. */
        private static final ThreadLocal<Document> FILTER = new ThreadLocal<>();

        IndexedDatabase(String name, CursorRegistry cursors) {
            super(name, cursors);
        }

        @Override
        protected MemoryCollection openOrCreateCollection(String name, CollectionOptions options) {
            return new IndexedCollection(this, name, options, cursorRegistry);
        }

        @Override
        protected void addIndex(Document description) {
            Document outer = FILTER.get(); // making the collection adds its _id index in between
            FILTER.set((Document) description.get("partialFilterExpression"));
            try {
                super.addIndex(description);
            } finally {
                FILTER.set(outer);
            }
        }

        @Override
        protected Index<Integer> openOrCreateUniqueIndex(String collection, String name, List<IndexKey> keys, boolean sparse) {
            Document filter = FILTER.get();
            return filter == null
                ? super.openOrCreateUniqueIndex(collection, name, keys, sparse)
                : new PartialUniqueIndex(name, keys, sparse, filter);
        }
    }

    private static class IndexedCollection extends MemoryCollection {
        IndexedCollection(IndexedDatabase database, String name, CollectionOptions options, CursorRegistry cursors) {
            super(database, name, options, cursors);
        }

        @Override
        protected QueryResult queryDocuments(Document query, Document sort, int skip, int limit, int batch, Document fields) {
            for (Index<Integer> index : getIndexes()) {
                if (!index.isUnique() || query.size() <= index.getKeys().size()) {
                    continue;
                }
                Document part = indexedPart(query, index);
                if (part != null && index.canHandle(part)) {
                    var found = StreamSupport.stream(index.getPositions(part).spliterator(), false).map(this::getDocument);
                    return matchDocumentsFromStream(found, query, sort, skip, limit, batch, fields);
                }
            }
            return super.queryDocuments(query, sort, skip, limit, batch, fields);
        }

        /** The index's fields of the query, or null when one is missing or null: that is left to the scan. */
        private static Document indexedPart(Document query, Index<Integer> index) {
            Document part = new Document();
            for (IndexKey key : index.getKeys()) {
                Object value = query.get(key.getKey());
                if (value == null) {
                    return null;
                }
                part.put(key.getKey(), value);
            }
            return part;
        }
    }

    /** A unique index over the documents that match its filter; the others are not in it. */
    private static class PartialUniqueIndex extends MemoryUniqueIndex {
        private final Document filter;
        private final QueryMatcher matcher = new DefaultQueryMatcher();

        PartialUniqueIndex(String name, List<IndexKey> keys, boolean sparse, Document filter) {
            super(name, keys, sparse);
            this.filter = filter;
        }

        private boolean covers(Document document) {
            return matcher.matches(document, filter);
        }

        @Override
        public synchronized void checkAdd(Document document, MongoCollection<Integer> collection) {
            if (covers(document)) {
                super.checkAdd(document, collection);
            }
        }

        @Override
        public synchronized void add(Document document, Integer position, MongoCollection<Integer> collection) {
            if (covers(document)) {
                super.add(document, position, collection);
            }
        }

        @Override
        public synchronized Integer remove(Document document) {
            return covers(document) ? super.remove(document) : null;
        }

        @Override
        public Integer getPosition(Document document) {
            return covers(document) ? super.getPosition(document) : null;
        }

        @Override
        public synchronized void checkUpdate(Document before, Document after, MongoCollection<Integer> collection) {
            if (!covers(after)) {
                return;
            }
            if (covers(before)) {
                super.checkUpdate(before, after, collection);
            } else {
                super.checkAdd(after, collection);
            }
        }

        @Override
        public void updateInPlace(Document before, Document after, Integer position, MongoCollection<Integer> collection) {
            if (covers(before) && covers(after)) {
                super.updateInPlace(before, after, position, collection);
            } else {
                remove(before);
                add(after, position, collection);
            }
        }

        @Override
        public synchronized boolean canHandle(Document query) {
            boolean plain = query.values().stream().noneMatch(v -> v instanceof Document || v instanceof Collection);
            return plain && super.canHandle(query) && covers(query);
        }

        @Override
        public boolean hasSameOptions(Index<?> other) {
            return other instanceof PartialUniqueIndex partial && partial.filter.equals(filter) && super.hasSameOptions(other);
        }

        @Override
        public Document toIndexDescription() {
            return super.toIndexDescription().append("partialFilterExpression", filter);
        }
    }
}
